#pragma once
/// What the ranks of a process share: the devices and the programs compiled for them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/accelerator/accelerator.h"
#include "tessera/accelerator/plugin_work.h"
#include "tessera/accelerator/processes.h"
#include "tessera/accelerator/program_cache.h"
#include "tessera/accelerator/program_modules.h"
#include "tessera/comm/communicator.h"
#include "tessera/hlo/start_order.h"
#include "tessera/pjrt/buffer.h"
#include "tessera/pjrt/client.h"
#include "tessera/pjrt/executable.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// A module on the devices of its stage.
struct LoadedModule {
  hlo::Module module;
  pjrt::Executable executable;
};

/// A program of a plan on all devices of this process: pieces by stage (ProgramModules).
struct LoadedProgram {
  std::vector<std::vector<LoadedModule>> stages;
  std::vector<hlo::Start> starts;
};

class Session;

/// Where compiled programs come from.
enum class From { KeptOrCompiler, Kept, Compiler };
/// From::Kept, and a program was not kept.
struct NotKept {};

class LoadedPrograms : public std::enable_shared_from_this<LoadedPrograms> {
 public:
  /// Each rank of the processes has a device; `board`: by which the client meets those of others.
  /// Errors: Fault::Usage: fewer devices than ranks.
  LoadedPrograms(pjrt::Client client, Processes processes, std::shared_ptr<Board> board,
                 const AcceleratorOptions& options);

  const pjrt::Client& client() const { return client_; }
  const Processes& processes() const { return processes_; }
  /// That of a rank of the world.
  const pjrt::Device& device(int rank) const { return *devices_[static_cast<std::size_t>(rank)]; }
  /// Where values of that memory are, on this client's devices; empty: their own memory.
  std::string_view memory_kind(Memory memory) const;

  /// Takes the plan of each rank, and compiles its programs; all ranks of the world call it together,
  /// each with its plan, and one compiles for all of its process. Errors: as of compile;
  /// Fault::Usage: stages in several processes.
  std::shared_ptr<Session> open(std::shared_ptr<const Plan> plan, Communicator* world);

  /// Program number `program` of the plans of all ranks here. Errors: as of hlo::whole_module and pjrt::compile;
  /// Broken: stages that wait for each other; NotKept.
  LoadedProgram compile(const std::vector<std::shared_ptr<const Plan>>& plans, std::size_t program,
                        From from) const;

  /// With work of that name, which gets on where it raises `signs`.
  Patience patience(const std::string& name,
                    std::shared_ptr<std::atomic<std::int64_t>> signs) const;

  /// work_together, by the rank that leads, while the others of its process sleep, as it needs the
  /// cores. `ended`: ended_calls(), before ranks last met. What the rank that leads runs into is its
  /// own error alone.
  void call(int rank, std::int64_t ended, std::function<void()> work,
            std::function<void()> afterwards, const Patience& patience, Communicator* world);
  std::int64_t ended_calls() const;
  /// Runs what is short and of one rank alone, with the patience of a run.
  void call_alone(std::function<void()> work, const std::string& name);

  /// A run failed, or was left while it lasted: what it used stays until let_go(), as a device that
  /// was lost may never let go of it.
  void give_up(std::shared_ptr<const Session> session);
  void let_go();
  /// Something was given up, or is still under way.
  bool failed() const;

 private:
  struct Opening;
  std::shared_ptr<void> counted();
  void agree_on_memory(int rank, Communicator& world);
  void end_call();
  void sleep_through_call(std::int64_t ended, Communicator* world);
  bool keeps() const;
  Target target() const { return {client_.platform_name(), device(0).attributes}; }
  pjrt::Executable compiled(const hlo::Module& module, int stage, const pjrt::NamedValues& flags,
                            From from) const;
  pjrt::Executable executable(const std::string& module, const pjrt::CompileOptions& options,
                              From from) const;

  std::shared_ptr<Board> board_;  // outlives the client, which calls it
  pjrt::Client client_;
  Processes processes_;
  std::vector<const pjrt::Device*> devices_;  // by rank
  ProgramCache cache_;
  std::optional<std::int64_t> most_bytes_;  // that a program may take of a device
  std::chrono::milliseconds patience_;
  PluginThreads threads_;
  mutable std::once_flag checked_kernels_;
  std::atomic<int> under_way_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<Opening> opening_;  // while ranks meet
  std::vector<std::shared_ptr<const Session>> given_up_;
  std::condition_variable call_ended_;
  std::int64_t ended_calls_ = 0;
};

/// Returns when all ranks have come. What they wrote before is seen by all behind it.
void meet(Communicator* world, const char* where);

}  // namespace tessera
