#pragma once
/// What the ranks of a process share: the devices and the programs compiled for them.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/accelerator/program_cache.h"
#include "tessera/comm/communicator.h"
#include "tessera/hlo/modules.h"
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

struct LoadedPiece {
  RegionKind region = RegionKind::Begin;
  int chunk = 0;
  LoadedModule loaded;
};

/// What a stage runs. Without a pipeline it has one piece, which is the whole program and runs in
/// one action.
struct LoadedStage {
  std::vector<LoadedPiece> pieces;   // in an order in which they could run
  Actions actions;                   // each runs the pieces of its region and chunk
  std::optional<LoadedModule> sums;  // what sums begin with; none: there are none
};

/// A program of a plan on all devices of this process.
struct LoadedProgram {
  std::vector<LoadedStage> stages;
};

/// By name: of states their path.
using Buffers = std::map<std::string, pjrt::Buffer, std::less<>>;

/// What a rank brings to a run of a program, and what it gets.
struct Seat {
  Buffers* states = nullptr;       // read and written
  const Buffers* batch = nullptr;  // read
  Buffers* metrics = nullptr;      // written
};

/// What a program of a plan without a pipeline computes, for a plugin of that platform.
hlo::Module module_of(const Plan& plan, const ProgramPlan& program, std::string_view platform);

class LoadedPrograms {
 public:
  LoadedPrograms(pjrt::Client client, ProgramCache cache)
      : client_(std::move(client)), cache_(std::move(cache)) {}

  const pjrt::Client& client() const { return client_; }
  /// Where values of that memory are, on this client's devices; empty: their own memory.
  std::string_view memory_kind(Memory memory) const;

  /// The programs of the plan, in its order; all ranks of the world call it together, each with its
  /// plan, and one compiles for all. They live as long as this. Errors: as of hlo::whole_module and
  /// pjrt::compile; Broken: stages that wait for each other.
  std::vector<const LoadedProgram*> load(const Plan& plan, Communicator* world);

  /// Runs a program once on all devices. All ranks call it together, each with its seat.
  void run(const LoadedProgram& program, const Seat& seat, Communicator* world);

 private:
  LoadedModule compiled(hlo::Module module, int stage) const;
  pjrt::Executable executable(const std::string& module, const pjrt::CompileOptions& options) const;
  std::unique_ptr<LoadedProgram> compile(std::size_t program) const;

  pjrt::Client client_;
  ProgramCache cache_;
  std::vector<std::unique_ptr<LoadedProgram>> programs_;  // of all plans
  std::vector<const LoadedProgram*> last_;                // of the plan at hand
  std::vector<const Plan*> plans_;                        // by rank, while they meet
  std::vector<Seat> seats_;                               // by rank, while they meet
};

}  // namespace tessera
