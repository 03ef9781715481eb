#pragma once
/// What a checkpoint of a run records beside its tensors. It comes from a file, so it is checked as
/// strictly as what a user says, and by the same code.

#include <string>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

// Names of the texts in a checkpoint's record.
inline constexpr const char *kRecordedConfig = "config", *kRecordedVocabulary = "vocabulary",
                            *kRecordedData = "data", *kRecordedHeldOut = "held-out-data",
                            *kRecordedChanges = "changes", *kRecordedHubConfig = "hub-config",
                            *kRecordedLabels = "labels", *kRecordedIds = "ids",
                            *kRecordedStream = "stream", *kRecordedBase = "base";

/// Counts the samples that were consumed; CheckpointRecord::samples has the same number.
inline constexpr const char* kSamplesState = "data.samples";

/// What a checkpoint is read for: to train on, or for its weights, whatever trained them.
enum class RecordedUse { Training, Weights };

struct RecordedRun {
  RunConfig config;                           // complete
  std::map<std::string, std::string> fields;  // the same as text; later versions may know more
  Vocabulary vocabulary;
  std::string data;                      // the data's digest
  std::string held_out = {};             // Dataset::held_out_digest
  std::vector<std::string> labels = {};  // names of what is predicted, by number; empty: none
  std::string ids = {};                  // the digest of the data's ids; empty: not recorded
};

/// Errors: Fault::Checkpoint, naming the file: it records no run; a configuration that
/// find_problems refuses; weights that meant something else when they were trained
/// (ModelFamily::changes); a damaged vocabulary, or one wider than the model; a step or a counter
/// that no run reaches; more layers than tensors. `families`: its model may be of one of these.
RecordedRun recorded_run(const Checkpoint& checkpoint, const OwnFamilies& families = {},
                         RecordedUse use = RecordedUse::Training);

/// config.json of the model from which the weights came first; empty: they began here.
std::string recorded_hub_config(const Checkpoint& checkpoint);

/// The same errors, for checkpoints that may be of something else than a run: these are passed
/// over.
CheckpointJudge recorded_run_judge(const OwnFamilies& families = {},
                                   RecordedUse use = RecordedUse::Training);

}  // namespace tessera
