#pragma once
/// A checkpoint that a run goes on from or begins with.

#include <optional>
#include <string>
#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/config/recorded.h"

namespace tessera {

/// The checkpoint, and what it records.
struct Source {
  Checkpoint checkpoint;
  RecordedRun run;
};

/// That of config.init_from, a checkpoint or a run. Errors: Fault::Checkpoint: damage, or none.
Source open_init(const RunConfig& config);

/// What data is read with for a model that exists.
struct InitModel {
  std::optional<Vocabulary> vocabulary = {};  // none: that of the run's fields
  std::vector<std::string> labels = {};
  std::string checkpoint = {};  // that has the vocabulary
};

/// The model that init-from names, of commands that train nothing: the model of the run becomes it
/// but for what the user told, as in take_model. Of a folder of Hugging Face's, config.json is
/// enough; where there are weights they say whether the head is the table. Returns what data is
/// read with. Without init-from it does nothing. Errors: no such folder or checkpoint; one that is
/// damaged.
InitModel take_init_model(RunConfig& config, Problems& problems, std::vector<std::string>& notices);

/// That of config.resume; none: the run does not go on.
std::optional<Source> find_source(const RunConfig& config, Problems& problems,
                                  std::vector<std::string>& notices);

/// The model of the run becomes that of the checkpoint but for what the user told.
void take_model(RunConfig& config, const RecordedRun& from);

/// f32 products that were left open are made as the checkpoint's run made them, where this machine
/// can. `config.choices` are what they are of without it.
void take_f32_products(RunConfig& config, const RunConfig& from);

/// Weights know the tokens that they were trained on: another tokenizer is refused. One that is no
/// longer where it was does no harm, because the checkpoint `path` has its files, in `recorded`.
void check_tokenizer(const RunConfig& config, const Vocabulary& recorded, const std::string& path,
                     Problems& problems);

}  // namespace tessera
