#pragma once
/// Whether a run may write into the folder that it is given, before it holds it.

#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint_calls.h"
#include "tessera/config/config.h"
#include "tessera/config/problems.h"

namespace tessera {

/// Whether the run in `output` has written losses, and came neither to a checkpoint nor to its end.
bool only_started(const std::string& output);

/// What becomes of a run with checkpoints, or one that ended, in the folder of a new one.
enum class OtherRun { Refuse, Replace };

/// Problems: no folder is given; it is a file; it holds another run that is not to be replaced, or
/// no run where one is, or a config.toml that no run wrote; what is read is to be replaced.
/// A run that ended before its first checkpoint left nothing to lose: its folder is taken over.
void check_output(const RunConfig& config, OtherRun other, Problems& problems);

/// What tells the user that a run is replaced; empty: none is.
std::string notice_of_replaced_run(const RunConfig& config, OtherRun other);

/// Removes what a run that is replaced wrote into `output`, and nothing else: checkpoints last, so
/// that the folder holds a run until all is gone. Returns what could not be removed.
std::vector<std::string> remove_run(const std::string& output, const FileCalls& calls = {});

/// For resume auto where checkpoints_folder(config) has none. Errors: Fault::Checkpoint: a run with
/// other checkpoint-names left some in the output, beside which this one would begin anew.
void refuse_other_names(const RunConfig& config);

/// Its traces of a run and its checkpoints, by name.
std::vector<std::string> what_output_holds(const std::string& output);

}  // namespace tessera
