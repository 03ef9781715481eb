#pragma once
/// One rank's end of a run: what runs the programs of a plan, and holds its states.

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

/// When a call ran, on a monotonic clock. `call` points into the engine's plan.
struct CallTime {
  const Call* call = nullptr;
  Action action;
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct RunOptions {
  /// Each call that runs is added, by an engine that sees them: reserve what calls_of_run says, and
  /// nothing is allocated.
  std::vector<CallTime>* times = nullptr;
  /// Set to what the run wrote, by an engine that can measure it; else it stays as it is.
  UsedBytes* used_bytes = nullptr;
};

struct EngineOptions {
  /// After every run the work sections are filled with bytes that are NaN as floats, all but the
  /// metrics of that run: a program or a caller that reads what an earlier run left computes NaN,
  /// on every machine. Costs a write of the work sections per run.
  bool poison = true;
};

/// All ranks make their engines together, then run the same programs in the same order.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const Plan& plan() const = 0;

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
  virtual BatchInputs& begin(std::string_view program, const RunOptions& options) = 0;
  virtual void finish(std::string_view program, const RunOptions& options) = 0;
  /// How many calls run() makes; 0 where the engine does not see them.
  virtual std::size_t calls_of_run(std::string_view) const { return 0; }

  /// A metric of the last run. Errors: Fault::Usage: another program has run since.
  virtual HostTensor metric(std::string_view program, std::string_view name) const = 0;
  /// One that is a number.
  virtual double scalar(std::string_view program, std::string_view name) const = 0;

  /// A state of this rank, in its type of the plan.
  virtual StateBytes read_state(std::string_view path) const = 0;
  /// False where another rank of the process writes it, in memory that both read. To be done before
  /// any rank runs a program that reads it.
  virtual bool writes_state(std::string_view) const { return true; }
  /// `fill(std::span<std::byte>)` writes all of its bytes.
  template <std::invocable<std::span<std::byte>> Fill>
  void write_state(std::string_view path, const Fill& fill) {
    fill(begin_write(path));
    end_write(path);
  }
  void write_state(std::string_view path, std::span<const std::byte> bytes) {
    write_state(path, [&](std::span<std::byte> all) {
      check(all.size() == bytes.size(), "state '", path, "' of ", all.size(), " bytes is set to ",
            bytes.size());
      std::ranges::copy(bytes, all.begin());
    });
  }

  /// The calls and bytes that this rank has sent through its communicator, by the axes of groups
  /// ("dp", "cp.tp").
  virtual std::map<std::string, Counts> sent() const { return {}; }
  /// Bytes that crossed between the host and this rank's device since begin().
  virtual std::int64_t host_bytes() const { return 0; }
  /// False if a byte behind the end of a pool was written.
  virtual bool guard_intact() const { return true; }
  /// Bytes on the device that are on huge pages, as far as the system says.
  virtual std::int64_t huge_page_bytes() const { return 0; }

 protected:
  /// Memory for the bytes of a state, which hold anything until they are written.
  virtual std::span<std::byte> begin_write(std::string_view path) = 0;
  virtual void end_write(std::string_view path) = 0;
};

/// A metric of a program. `last`: the program that ran last; null: none. Errors: Fault::Usage: it is
/// another one.
const NamedTensor& find_metric(const Plan& plan, const ProgramPlan* last, std::string_view program,
                               std::string_view name);

}  // namespace tessera
