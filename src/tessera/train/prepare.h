#pragma once
/// Everything that a run needs, found or refused before anything is compiled or written.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/models/task.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/train/output_check.h"

namespace tessera {

class Communicator;
struct Dataset;

struct PreparedRun {
  RunConfig config;                               // complete; model.vocabulary is known
  RunConfig given;                                // as it was given: what is derived stays open
  Task task;                                      // of config.model
  std::shared_ptr<const Dataset> data;            // not null
  std::shared_ptr<const Dataset> test = nullptr;  // all of it is held out; null: nothing is tested
  std::optional<Checkpoint> from = {};            // where it goes on
  // Whose weights it begins with; none where it goes on.
  std::optional<Checkpoint> init = {};
  std::optional<PretrainedModel> pretrained = {};
  std::string ids = {};   // ids_digest
  std::string anew = {};  // the block of the classifier, where that of these weights is not taken
  std::string hub_config =
      {};                 // config.json of the model that the weights first came from; empty: none
  std::string base = {};  // record_of_base; of a run that begins, empty until it is to be saved
  std::vector<std::string> notices;
  std::vector<std::string> output_held;  // what_output_holds, before the checkpoint was chosen

  /// `given` without what was told of this invocation alone: a copy of the file that a run writes
  /// begins a run of its own, and permits nothing.
  RunConfig to_repeat() const;
};

/// Completes `config`, reads the data and the checkpoint to resume from, and holds them against
/// each other. What is wrong is added to `problems`, all of it; without any, the result is engaged.
/// Writes and removes nothing.
std::optional<PreparedRun> prepare_run(RunConfig config, Problems& problems,
                                       OtherRun other = OtherRun::Refuse);

/// That offload-folder, where it is used, is a folder in which this process can make files.
void check_offload_folder(const RunConfig& config, Problems& problems);

/// To be called once the lock of OUTPUT is held: before that, another run may have written there.
/// Errors: Fault::Resource: it has; what was prepared no longer fits.
void require_same_output(const PreparedRun& run);

/// Reads the base of a run that begins and whose checkpoints leave it out, for PreparedRun::base.
/// `world`: of its leader; nullptr: there is one rank.
void record_base(PreparedRun& run, Communicator* world);

/// What a checkpoint of this run records beside its tensors.
CheckpointRecord checkpoint_record(const PreparedRun& run, std::int64_t step, std::int64_t samples);

}  // namespace tessera
