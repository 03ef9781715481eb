#pragma once
/// The room `runtime`: runs a plan on one rank, and measures what it ran.
/// For: the calls of a program, in the order that the plan says.
/// Not for: deciding anything; that is done when it runs.
/// Rejected: run() without its inputs: between runs their memory holds other values, so whoever
/// filled them once would train on garbage, on some machines only. Inputs are filled by a function
/// for each run. Several threads for copies between memories: one makes them in the order of the
/// plan.
///
/// The executor: runs the calls of a planned program in order, on one rank, with kernels of a device
/// whose memory is this process's.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/runtime/engine.h"

namespace tessera {

/// With RunOptions::used_bytes it proves that the plan is the truth: the work sections are filled
/// with a pattern first, and what differs from it was written. Every other run has another pattern,
/// as the last byte written may happen to equal one.
class Executor final : public Engine {
 public:
  /// Allocates the plan's pools and writes the constants; states are zero until they
  /// are set or a program writes them. Device and world must outlive the executor. `world`: where
  /// the plan is of one rank of several.
  Executor(Plan plan, Device& device, Communicator* world = nullptr, EngineOptions options = {});
  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const override { return plan_; }
  BatchInputs& begin(std::string_view program, const RunOptions& options) override;
  void finish(std::string_view program, const RunOptions& options) override;
  std::size_t calls_of_run(std::string_view program) const override;
  HostTensor metric(std::string_view program, std::string_view name) const override;
  /// Allocates nothing.
  double scalar(std::string_view program, std::string_view name) const override;
  std::map<std::string, Counts> sent() const override;
  /// The memory of the state itself.
  StateBytes read_state(std::string_view path) const override { return {state(path)}; }
  bool writes_state(std::string_view path) const override;
  bool guard_intact() const override;
  std::int64_t huge_page_bytes() const override {
    return std::min(device_.huge_page_bytes(pools_.device), plan_.bytes(Memory::Device));
  }

 private:
  struct Ready;  // a call with addresses
  struct Runnable;
  std::span<std::byte> begin_write(std::string_view path) override { return state(path); }
  void end_write(std::string_view) override {}
  std::span<std::byte> state(std::string_view path) const;
  std::byte* address(const Place& place) const;
  void join_base();
  const Runnable& runnable(std::string_view program) const;
  Runnable& runnable(std::string_view program) {
    return const_cast<Runnable&>(std::as_const(*this).runnable(program));
  }
  std::byte* work(Memory memory) const { return pools_[memory] + plan_.state_bytes[memory]; }
  void fill_work(std::byte with);
  /// One past the highest byte of the pool that is not `pattern`, in the work section.
  std::int64_t end_of_used(Memory memory, std::byte pattern) const;

  Communicator* group(const Transfer& transfer);

  Plan plan_;
  Device& device_;
  Communicator* world_;
  EngineOptions options_;
  struct Joined {
    std::string axes;
    std::unique_ptr<Communicator> group;
  };
  std::map<std::string, Joined> groups_;  // by name, ranks and size
  PerMemory<std::byte*> pools_;           // nullptr where nothing lies on the host
  std::shared_ptr<void> base_;            // of Place::Section::Base; nullptr: nothing lies there
  bool writes_base_ = false;
  std::vector<std::unique_ptr<Runnable>> programs_;
  const Runnable* last_ = nullptr;  // whose metrics can be read
  bool second_pattern_ = false;     // of the next run that is measured
};

}  // namespace tessera
