#pragma once
/// Whether a run may write into the folder that it is given, before it holds it.

#include <string>
#include <vector>

#include "tessera/train/config.h"
#include "tessera/train/problems.h"

namespace tessera {

/// Problems: no folder is given, it is a file, or it holds another run.
/// A run that ended before its first checkpoint left nothing to lose: its folder is taken over.
void check_output(const RunConfig& config, Problems& problems);

/// What tells the user so; empty: the folder holds no such run, or it goes on.
std::string notice_of_failed_start(const RunConfig& config);

/// For resume auto where checkpoints_folder(config) has none. Errors: Fault::Checkpoint: a run with
/// other checkpoint-names left some in the output, beside which this one would begin anew.
void refuse_other_names(const RunConfig& config);

/// Its traces of a run and its checkpoints, by name.
std::vector<std::string> what_output_holds(const std::string& output);

}  // namespace tessera
