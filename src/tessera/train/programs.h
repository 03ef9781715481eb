#pragma once
/// The programs of a run, compiled into one plan.

#include <optional>
#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/run_needs.h"
#include "tessera/models/task.h"
#include "tessera/plan/compile.h"
#include "tessera/runtime/backend.h"
#include "tessera/train/run_setup.h"

namespace tessera {

/// Names of the programs of a plan.
inline constexpr const char* kInitProgram = "init";    // writes the first value of every state
inline constexpr const char* kCopyProgram = "copy";    // 16-bit copies of parameters that were read
inline constexpr const char* kTrainProgram = "train";  // on samples as long as the context
inline constexpr const char* kEvaluateProgram = "evaluate";
inline constexpr const char* kBeginProgram = "begin";             // caches as they were at first
inline constexpr const char* kReadSourceProgram = "read-source";  // into caches
inline constexpr const char* kPrefillProgram = "prefill";  // reads a part of a text into caches
inline constexpr const char* kDecodeProgram = "decode";    // one more token
inline constexpr const char* kCallProgram = "call";        // of a model that a program calls
inline constexpr const char* kReorderProgram = "reorder";  // of rows of the caches: beam search

/// The work of a step of such a program, as a part of that of kTrainProgram.
double share_of_full_step(const Plan& plan, std::string_view program);

struct PassTime {
  std::string program, pass;
  double seconds = 0;
};

struct Compiled {
  Plan plan;
  std::vector<Plan> others;  // of the first ranks of later stages, where they were asked for
  std::vector<PassTime> passes;
  std::optional<Graph> placed;  // the training step as propagated, where it was asked for
  double seconds = 0;
  std::int64_t resident_before = 0, resident_after = 0;  // bytes of the process in memory
};

/// Most texts that a validation writes at a time.
inline constexpr std::int64_t kScoredAtATime = 16;

struct WantedPrograms {
  bool train = true;  // with init
  bool evaluate = true;
  std::int64_t texts = 1;       // that are written at a time; 0: none. Several: with reorder
  bool loads = false;           // the base of adapters is read after init, and once a process
  const Graph* call = nullptr;  // kCallProgram, with init where nothing trains
  bool gradients = false;       // metrics of train: "gradient " and the path of each parameter
  bool rounded = true;  // false: mixed precision computes all in f32, as a comparison wants it
  bool placed = false;  // keep the placed graph of train
  bool stages = false;  // compile the plan of the first rank of every stage
  bool local = false;   // keep what programs compute (ProgramPlan::local)
  PassCheck* check = nullptr;  // compares numbers before and after each pass (with `stages`)
};

/// The programs that TextModel runs, for `texts` rows.
std::vector<ProgramSource> writing_programs(const TextWriting& writing, std::int64_t texts,
                                            const Strategy& strategy);

/// The plan and those of later stages, in order.
std::vector<const Plan*> plans_of(const Compiled& compiled);

/// Those that a run executes. One that neither validates nor tests neither compiles nor budgets
/// "evaluate".
WantedPrograms wanted_programs(const RunSetup& setup);

/// Compiles with the kernels of `device`, or with none (make_described_device) where the machine of
/// the run is only described. Writes the graphs after each pass to dump-dir where there is one:
/// rank 0 those of all stages and its own, the first rank of each later stage those of its own. The
/// times of a pass are those of all stages together.
Compiled compile_programs(const RunSetup& setup, const WantedPrograms& wanted, Device& device,
                          int rank = 0);
/// For a run on that backend.
Compiled compile_programs(const RunSetup& setup, WantedPrograms wanted, const Backend& backend,
                          int rank = 0);

/// How many numbers the model has.
std::int64_t count_parameters(const Plan& plan);
/// Those that a token reads: of experts as many as it chooses.
std::int64_t count_active_parameters(const Plan& plan, const ExpertsConfig& experts);

/// True where saves on the way are made from a copy while training goes on; that after the last
/// step is always waited for.
bool saves_from_a_copy(const RunConfig& config);
/// Bytes of that copy, beside the arena, of the rank that writes most; 0 where there is none.
std::int64_t save_copy_bytes(const RunConfig& config, const Plan& plan);

}  // namespace tessera
