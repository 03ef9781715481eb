#pragma once
/// The room `runtime`: runs a plan on one rank, and measures what it ran.
/// For: the calls of a program, in the order that the plan says.
/// Not for: deciding anything; that is done when it runs.
/// Rejected: run() without its inputs: between runs their memory holds other values, so whoever
/// filled them once would train on garbage, on some machines only. Inputs are filled by a function
/// for each run. Several threads for copies between memories: one makes them in the order of the
/// plan.
///
/// The executor: runs the calls of a planned program in order, on one rank.

#include <algorithm>
#include <concepts>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/plan/plan.h"
#include "tessera/tensor/batch_inputs.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {

/// The bytes of a state in memory of this process: the state itself where it is there, else a copy
/// that lives as long as this. Valid until the next run or write.
struct StateBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> copy = {};
};

/// One past the highest byte of each pool that a run wrote.
using UsedBytes = PerMemory<std::int64_t>;

/// When a call ran, on a monotonic clock. `call` points into the executor's plan.
struct CallTime {
  const Call* call = nullptr;
  Action action;
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct ExecutorOptions {
  /// After every run the work sections are filled with bytes that are NaN as floats, all but the
  /// metrics of that run: a program or a caller that reads what an earlier run left computes NaN,
  /// on every machine. Costs a write of the work sections per run.
  bool poison = true;
};

struct RunOptions {
  /// Each call that runs is added: reserve what calls_of_run says, and nothing is allocated.
  std::vector<CallTime>* times = nullptr;
  /// Set to what the run wrote. Proof that the plan is the truth: the work sections are filled with
  /// a pattern first, and what differs from it was written. Every other run has another pattern, as
  /// the last byte written may happen to equal one.
  UsedBytes* used_bytes = nullptr;
};

class Executor {
 public:
  /// Allocates the plan's pools and writes the constants; states are zero until they
  /// are set or a program writes them. Device and world must outlive the executor. `world`: where
  /// the plan is of one rank of several; all ranks make their executors together, then run the same
  /// programs in the same order.
  Executor(Plan plan, Device& device, Communicator* world = nullptr, ExecutorOptions options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return plan_; }

  /// Runs all actions of a program on the batch inputs that `fill(BatchInputs&)` writes, all of
  /// them. Between runs there are none: their memory is used for other values.
  /// Errors: Fault::Usage: an input that was not filled; its program, its name and what to do.
  template <std::invocable<BatchInputs&> Fill>
  void run(std::string_view program, const Fill& fill, const RunOptions& options = {}) {
    fill(begin(program, options));
    finish(program, options);
  }
  /// Runs a program without batch inputs.
  void run(std::string_view program, const RunOptions& options = {}) {
    begin(program, options);
    finish(program, options);
  }
  /// run() in two steps: the inputs, to be filled, and the run on them.
  BatchInputs& begin(std::string_view program, const RunOptions& options);
  void finish(std::string_view program, const RunOptions& options);
  /// How many calls run() makes.
  std::size_t calls_of_run(std::string_view program) const;
  /// A metric of the last run. Errors: Fault::Usage: another program has run since.
  HostTensor metric(std::string_view program, std::string_view name) const;
  /// One that is a number. Allocates nothing.
  double scalar(std::string_view program, std::string_view name) const;

  /// The calls and bytes that this rank has sent, by the axes of groups ("dp", "cp.tp").
  std::map<std::string, Counts> sent() const;

  /// A state of this rank, in its type of the plan.
  StateBytes read_state(std::string_view path) const;
  /// `fill(std::span<std::byte>)` writes all of its bytes.
  template <std::invocable<std::span<std::byte>> Fill>
  void write_state(std::string_view path, const Fill& fill) {
    fill(state(path));
  }
  void write_state(std::string_view path, std::span<const std::byte> bytes) {
    write_state(path, [&](std::span<std::byte> all) {
      check(all.size() == bytes.size(), "state '", path, "' of ", all.size(), " bytes is set to ",
            bytes.size());
      std::ranges::copy(bytes, all.begin());
    });
  }

  /// False if a byte behind the end of a pool was written.
  bool guard_intact() const;
  /// Bytes of the pool on the device that are on huge pages, as far as the system says.
  std::int64_t huge_page_bytes() const {
    return std::min(device_.huge_page_bytes(pools_.device), plan_.peak_bytes());
  }

 private:
  struct Ready;  // a call with addresses
  struct Runnable;
  std::byte* address(const Place& place) const;
  std::span<std::byte> state(std::string_view path) const;
  const Runnable& runnable(std::string_view program) const;
  Runnable& runnable(std::string_view program) {
    return const_cast<Runnable&>(std::as_const(*this).runnable(program));
  }
  std::byte* work(Memory memory) const { return pools_[memory] + plan_.state_bytes[memory]; }
  void fill_work(std::byte with);
  /// One past the highest byte of the pool that is not `pattern`, in the work section.
  std::int64_t end_of_used(Memory memory, std::byte pattern) const;
  const NamedTensor& find_metric(std::string_view program, std::string_view name) const;

  Communicator* group(const Transfer& transfer);

  Plan plan_;
  Device& device_;
  Communicator* world_;
  ExecutorOptions options_;
  struct Joined {
    std::string axes;
    std::unique_ptr<Communicator> group;
  };
  std::map<std::string, Joined> groups_;  // by name, ranks and size
  PerMemory<std::byte*> pools_;           // nullptr where nothing lies on the host
  std::vector<std::unique_ptr<Runnable>> programs_;
  const Runnable* last_ = nullptr;  // whose metrics can be read
  bool second_pattern_ = false;     // of the next run that is measured
};

}  // namespace tessera
