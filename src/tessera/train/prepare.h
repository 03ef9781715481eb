#pragma once
/// Everything that a run needs, found or refused before anything is compiled or written.

#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/config.h"

namespace tessera {

struct PreparedRun {
  RunConfig config;  // complete; model.vocabulary is known
  RunConfig told;    // as it was given: what is derived stays open
  Dataset data;
  std::optional<Checkpoint> from;  // where it goes on
  std::vector<std::string> notices;
};

/// Completes `config`, reads the data and the checkpoint to resume from, and holds them against
/// each other. What is wrong is added to `problems`, all of it; without any, the result is engaged.
/// Writes nothing.
std::optional<PreparedRun> prepare_run(RunConfig config, Problems& problems);

/// What a checkpoint of this run records beside its tensors.
CheckpointRecord checkpoint_record(const PreparedRun& run, std::int64_t step, std::int64_t samples);

/// The configuration and the vocabulary that a checkpoint records.
/// Errors: Fault::Checkpoint: it records none, or a damaged one.
RunConfig recorded_config(const Checkpoint& checkpoint);
Vocabulary recorded_vocabulary(const Checkpoint& checkpoint);

}  // namespace tessera
