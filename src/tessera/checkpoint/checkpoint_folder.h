#pragma once
/// The folder of a run's checkpoints: what is committed, in which order, what is left over.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/checkpoint_calls.h"
#include "tessera/checkpoint/checkpoint_names.h"

namespace tessera {

/// The name of a committed checkpoint, in the order in which they were committed: a branch is begun
/// by a save that does not go on from the last step, after a resume from an older checkpoint.
struct StepName {
  std::int64_t branch = 0, step = 0;
  CheckpointNames names = CheckpointNames::Step;
  friend auto operator<=>(const StepName&, const StepName&) = default;
};

/// "step-00000020", "step-00000020.1", "iter_0000020"
std::string to_text(const StepName& name);
/// Reads what to_text writes, and nothing else.
std::optional<StepName> parse_step_name(std::string_view name);

struct CheckpointFolder {
  std::vector<StepName> committed;    // oldest first
  std::vector<std::string> leftover;  // names of unfinished and pruned ones, sorted
};
/// What lies in a folder; nothing where it does not exist.
CheckpointFolder scan_checkpoints(const std::string& folder);

/// The name under which a save commits beside those that are there.
StepName next_name(const CheckpointFolder& present, std::int64_t step,
                   CheckpointNames names = CheckpointNames::Step);

/// Which committed ones stay when a folder is tidied.
struct KeptCheckpoints {
  int newest = 3;                    // so many of the newest that open
  std::vector<std::string> named;    // and these, by name
  std::vector<std::string> damaged;  // names of those that open and do not count
};
/// Removes committed ones that are older than those that count, and leftovers of no living process.
/// Returns what could not be removed.
std::vector<std::string> tidy_checkpoints(const FileCalls& calls, const std::string& folder,
                                          const KeptCheckpoints& kept);

/// Of checkpoints called step-NNNNNNNN, in OUTPUT.
inline constexpr const char* kCheckpointsFolder = "checkpoints";
/// Where a run with OUTPUT `output` keeps its checkpoints, by how they are called.
std::string checkpoints_folder(const std::string& output, CheckpointNames names);
/// The committed checkpoints of a run, however they are called: oldest first, those in OUTPUT
/// itself before those in OUTPUT/checkpoints.
std::vector<std::string> checkpoints_of_run(const std::string& output);

/// Begins of names that hold no checkpoint yet, or no longer.
inline constexpr const char* kUnfinished = ".tmp-";
inline constexpr const char* kPruned = ".trash-";

/// The checkpoint that `path` names: itself, by the path of its folder where `path` is a link or
/// spelled otherwise, or the newest of a folder of checkpoints or of the OUTPUT of a run.
/// Errors: Fault::Checkpoint.
std::string find_checkpoint(const std::string& path);
/// All that `path` names, oldest first. Errors: Fault::Checkpoint: none.
std::vector<std::string> find_checkpoints(const std::string& path);

}  // namespace tessera
