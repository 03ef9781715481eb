#pragma once
/// A trained model on other data than it was trained on: what it predicts, and what that is worth.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/data/dataset.h"
#include "tessera/files/other_columns.h"
#include "tessera/models/judge.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/run_setup.h"
#include "tessera/train/written_sample.h"

namespace tessera {

/// A trained model and its data, held against each other.
struct Evaluation {
  RunConfig config = {};  // of the model, complete, on the machine that was asked for
  Vocabulary vocabulary = Vocabulary::bytes();
  std::optional<Checkpoint> checkpoint = {};  // one of these has the weights
  std::optional<PretrainedModel> pretrained = {};
  std::optional<Dataset> data = {};     // all of it is held out; none: texts are written
  std::vector<GivenText> sources = {};  // from which texts are written
  OtherColumns columns = {};            // of the rows, where they are predicted
  std::vector<std::string> notices = {};
};

/// Fields of a run's configuration that say where a trained model computes, not what.
inline constexpr std::string_view kDeviceFields[] = {"devices",
                                                     "tensor-model-parallel-size",
                                                     "pipeline-model-parallel-size",
                                                     "machine",
                                                     "distributed-timeout",
                                                     "device",
                                                     "threads",
                                                     "graph-optimization",
                                                     "max-isa",
                                                     "amx",
                                                     "f32-products",
                                                     "pack-weights"};

/// Fields of a run's configuration that say how the data is read, and in which floats the model
/// computes: what a run recorded of them holds unless they are given.
std::vector<std::string_view> evaluation_fields();

/// `config`: the recorded one, on the devices of `asked`.
RunConfig on_devices_of(const RunConfig& config, const RunConfig& asked);
/// The same, computing `batch` samples at a time.
RunConfig on_devices_of(const RunConfig& config, const RunConfig& asked, std::int64_t batch);

/// The model of a folder of Hugging Face, with the vocabulary of its tokenizer, or that of `asked`.
/// Errors: as of PretrainedModel::open; Fault::Usage: it has no tokenizer.
Evaluation open_pretrained(const std::string& path, const RunConfig& asked);

/// Opens the model at `path`, a run, a checkpoint or a folder of Hugging Face, and reads
/// asked.test_data for it. `predicts`: for predictions, so that it may lack labels; else it is
/// scored.
/// Errors: as of Checkpoint::open, PretrainedModel::open and load_test_data; Fault::Usage: the
/// model predicts nothing of a row; a folder without a tokenizer; fields that do not fit.
/// Fault::Data: nothing to score.
Evaluation prepare_evaluation(const std::string& path, const RunConfig& asked, std::int64_t batch,
                              bool predicts);

/// Loads the weights. Errors: Fault::Checkpoint: some parameters are missing, or others.
void load_weights(RankGroup& group, const Evaluation& evaluation);

struct Evaluated {
  std::int64_t samples = 0;  // that are scored: rows without a label are not
  double loss = 0;
  NamedMeans scores;
};
/// Of the leader of a group with program "evaluate".
Evaluated evaluate(RankGroup& group, const RunSetup& setup, const Evaluation& evaluation);

/// What the model predicts, a line for each row of the data: the columns of the row that are no
/// texts, "prediction", and probabilities (docs/guides/fine-tune.md). Of the leader, as above, or,
/// of models that write, with the programs of writing_programs. Errors: Fault::Data: a column of
/// the row has a name of those.
PredictionTable predict(RankGroup& group, const RunSetup& setup, const Evaluation& evaluation);

}  // namespace tessera
