#pragma once
/// What a run has otherwise than the checkpoint that it goes on from, or whose weights it takes.

#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/config/recorded.h"

namespace tessera {

/// Of a run's data; empty: not known, or there is none.
struct DataDigests {
  std::string text, held_out;  // Dataset::digest, held_out_digest
  std::string ids;             // that the text has in its vocabulary
};

/// Holds a run against the checkpoint `path` that it goes on from: what may not change is a
/// problem, what may is a notice.
void compare_run(const RunConfig& config, const RecordedRun& from, const std::string& path,
                 const DataDigests& data, std::vector<std::string>& notices, Problems& problems);

/// The same for what follows from the length of epochs, where `config` has them: once it is known.
void compare_epochs(const RunConfig& config, const RecordedRun& from,
                    std::vector<std::string>& notices);

/// The weights of the checkpoint `path` fit: every field of the model is that of the run that they
/// come from.
void compare_model(const RunConfig& config, const RecordedRun& init, const std::string& path,
                   Problems& problems);

}  // namespace tessera
