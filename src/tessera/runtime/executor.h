#pragma once
/// Runs the programs of a plan: a step is a walk over ready calls.

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/plan/plan.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {

/// When a call ran, on a clock that never goes back. `call` lies in the executor's plan.
struct CallTime {
  const Call* call = nullptr;
  Action action;
  std::int64_t begin_ns = 0, end_ns = 0;
};

class Executor {
 public:
  /// Allocates the plan's arena on the device and writes the constants; states are zero until they
  /// are set or a program writes them. Device and world must outlive the executor. `world`: where
  /// the plan is of one rank of several; all ranks make their executors together, then run the same
  /// programs in the same order.
  Executor(Plan plan, Device& device, Communicator* world = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return plan_; }

  /// The memory of a batch input, to be filled before run(). Errors: no such input.
  void* batch(std::string_view program, std::string_view name);
  /// Runs all actions of a program. Each call that runs is added to `times`: reserve what
  /// calls_of_run says, and nothing is allocated.
  void run(std::string_view program, std::vector<CallTime>* times = nullptr);
  /// How many calls run() makes.
  std::size_t calls_of_run(std::string_view program) const;
  /// A metric of the last run, before another program runs.
  HostTensor metric(std::string_view program, std::string_view name) const;
  /// One that is a number. Allocates nothing.
  double scalar(std::string_view program, std::string_view name) const;

  /// What this rank has sent, by the axes of groups ("dp", "cp.tp").
  std::map<std::string, Counts> sent() const;

  /// The bytes of a state, in its type of the plan.
  std::span<std::byte> state(std::string_view path);
  std::span<const std::byte> state(std::string_view path) const;

  // Proof that the plan is the truth: between steps the work section holds nothing that is needed.
  /// Fills the work section with `pattern`; batch inputs lie in it, so fill them afterwards.
  void fill_work(std::byte pattern);
  /// One past the highest byte of the arena that differs from `pattern` since fill_work: what was
  /// really used.
  std::int64_t highest_written(std::byte pattern) const;
  /// False if a byte behind the arena's end was written.
  bool guard_intact() const;
  /// Bytes of the plan that lie on huge pages, as far as the system tells.
  std::int64_t huge_page_bytes() const {
    return std::min(device_.huge_page_bytes(arena_), plan_.peak_bytes());
  }

 private:
  struct Ready;  // a call with addresses
  struct Runnable;
  std::byte* address(const Place& place) const;
  const Runnable& runnable(std::string_view program) const;
  const NamedTensor& find_metric(std::string_view program, std::string_view name) const;

  Communicator* group(const std::vector<std::string>& axes);

  Plan plan_;
  Device& device_;
  Communicator* world_;
  std::map<std::string, std::unique_ptr<Communicator>> groups_;  // by axes
  std::byte* arena_ = nullptr;
  std::vector<std::unique_ptr<Runnable>> programs_;
};

}  // namespace tessera
