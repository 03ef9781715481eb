#pragma once
/// The weights that adapters are of, which checkpoints of a run leave in their folder: what they
/// record of them, and how they are found again.

#include <string>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {

/// Whether checkpoints of the run leave out parameters: those of adapters whose base lies in a folder
/// of Hugging Face's, unless save-base says otherwise, which prepare_run sets for other bases.
bool leaves_base_out(const RunConfig& config);

/// Whether checkpoints of the run leave out a state: a parameter that is neither of an adapter nor
/// of the task's own block.
LeftOut left_out_of_saves(const RunConfig& config);

/// States that every rank reads from weights that are there, and none changes: adapters' base. Empty:
/// the run has none, as its weights begin at random.
LeftOut base_of_adapters(const RunConfig& config);

/// JSON: the folder of the base, its name, and a digest of each parameter that is left out.
std::string record_of_base(const RunConfig& config, const PretrainedModel& base);
/// The same of a run that goes on from a checkpoint, whose base may have been moved.
std::string record_of_base(const Checkpoint& from);

struct BaseOptions {
  bool check = true;    // the digests, which reads all of the base
  std::string at = {};  // where the base is now; empty: where the checkpoint says
};

/// Checkpoint::open; the parameters that it left out are read from its base.
/// Errors: Fault::Checkpoint: the base is not there, or has other values; as of
/// PretrainedModel::open.
Checkpoint open_with_base(const std::string& path, const BaseOptions& options = {});

}  // namespace tessera
