#include "tessera/train/pretrained_start.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/models/causal_lm.h"
#include "tessera/models/task_kind.h"
#include "tessera/models/translation.h"
#include "tessera/pretrained/hub_cache.h"
#include "tessera/sources/picture_data.h"
#include "tessera/train/compare_runs.h"

namespace tessera {

namespace {

/// Ids of a vocabulary that is made of the data are other tokens than the folder's: its special
/// tokens would be characters of the data. Those of the family follow the data's. Ids of a program
/// are the folder's.
bool has_made_tokens(const RunConfig& config) {
  return config.program_data.empty() && config.vocabulary != VocabularyKind::Tokenizer &&
         tokenizer_choice(config).none();
}

}  // namespace

bool is_hub_folder(const RunConfig& config) {
  if (PretrainedModel::is_at(config.init_from)) return true;
  const std::filesystem::path folder(config.init_from);
  std::error_code missing;
  const bool checkpoint = std::filesystem::is_regular_file(folder / kManifestName, missing);
  if (!checkpoint) PretrainedModel::refuse_other(config.init_from);
  require(!config.init_from_config, "init-from-config reads the config.json of a Hugging Face ",
          "folder, but '", config.init_from, "' has none; leave it out, or give such a folder");
  return false;
}

PretrainedModel open_pretrained(const RunConfig& config, OpenPretrained::Weights weights) {
  using Weights = OpenPretrained::Weights;
  // A folder of config.json alone can mean nothing else.
  const bool anew = weights == Weights::Read && !PretrainedModel::has_weights(config.init_from);
  if (config.init_from_config || anew) weights = Weights::None;
  return PretrainedModel::open(
      config.init_from,
      {.weights = weights,
       .task_given = !config.defaulted.contains("task"),
       .of_sentences = config.model.task == kSentenceEmbedding,
       .or_else = ", or give --init-from-config to initialize all weights at random"});
}

void take_model(RunConfig& config, const PretrainedModel& from) {
  // An adapter has one where tokens were added.
  const std::string& folder = Tokenizer::is_in(from.path()) ? from.path() : from.base();
  if (config.defaulted.contains("vocabulary") && tokenizer_choice(config).none() &&
      Tokenizer::is_in(folder)) {
    config.vocabulary = VocabularyKind::Tokenizer;
    config.tokenizer = folder;
  }
  RunConfig theirs;
  theirs.model = from.config();
  if (has_made_tokens(config)) theirs.model.special_tokens.clear();
  for (const Field& field : fields()) {
    const bool of_model = field.group == FieldGroup::Model || field.group == FieldGroup::Adapters;
    if (of_model && config.defaulted.contains(field.name)) copy_field(field, config, theirs);
  }
  if (config.defaulted.contains("image-processor") && reads_picture_files(config))
    config.image_processor = from.image_processor();
  forget_unread_fields(config);  // sizes that the family derives, as the context of vit
}

std::string notice_of_unknown_rows(const PretrainedModel& from, const Vocabulary& vocabulary) {
  const VocabularyKind kind = vocabulary.kind();
  const bool made = kind == VocabularyKind::Characters || kind == VocabularyKind::Bpe;
  if (!made || from.parameters().empty()) return "";
  return text("'", from.path(), "' has weights and no tokenizer, so the ", to_text(kind),
              " of the data use the rows of its table in another order: unless it was trained ",
              "on the same data, rows belong to other tokens; give ", "--tokenizer");
}

std::string notice_of_other_tokens(const RunConfig& config, const PretrainedModel& from) {
  const std::string& theirs = from.config().special_tokens;
  if (theirs.empty() || !has_made_tokens(config) || config.given.contains("special-tokens"))
    return "";
  const std::string ours = to_text(translation_tokens(config.model));
  if (ours == theirs) return "";
  return text("special-tokens is ", ours, " (padding, start, end), not ", theirs,
              " as in config.json of '", from.path(), "', whose ids are those of ",
              to_text(config.vocabulary), " here; give --tokenizer to keep them");
}

std::string notice_of_unread_first_value(const RunConfig& config, const std::string& path) {
  const auto asked = config.given.find("layer-scale");
  if (asked == config.given.end()) return "";
  return text(asked->second, " does nothing: it is the first value of weights that '", path,
              "' has");
}

Error with_download_hint(const Error& failure, const std::string& name) {
  std::error_code ignored;
  if (!is_hub_name(name) || std::filesystem::exists(name, ignored)) return failure;
  return failure.with(text("if it is a model's name, that model has not been downloaded by ",
                           "Hugging Face's programs: pip install ", "huggingface_hub; hf download ",
                           name));
}

void compare_model(const RunConfig& config, const PretrainedModel& from, Problems& problems) {
  RunConfig theirs = config;
  theirs.model = from.config();
  theirs.model.context = config.model.context;
  theirs.model.source_context = config.model.source_context;
  theirs.model.generator_width = config.model.generator_width;  // folders have no generator
  if (has_made_tokens(config)) theirs.model.special_tokens = config.model.special_tokens;
  compare_model(config, {theirs, record_of(theirs), Vocabulary::bytes(), ""}, from.path(),
                problems);
}

void require_padding(const PretrainedModel& from, const Vocabulary& vocabulary) {
  const std::optional<std::int32_t> ours = end_padding(vocabulary);
  if (const std::string none = from.reads_last_token(); ours && !none.empty())
    fail(Fault::Data, "'", from.path(), "': pad_token_id of config.json is ", none,
         ", so the classifier would read the last token even if it is padding, which is ",
         "not supported; write the tokenizer's, \"pad_token_id\": ", *ours,
         ", into config.json to classify by the last token before padding");
}

void require_same_padding(const PretrainedModel& from, const Vocabulary& vocabulary) {
  const std::optional<std::int32_t> theirs = from.end_padding(), ours = end_padding(vocabulary);
  if (!theirs || !ours || theirs == ours) return;
  fail(Fault::Data, "'", from.path(), "': pad_token_id of config.json is ", *theirs,
       ", and padding of the tokenizer is ", *ours,
       ", so they disagree about the last token of a text; make both the same");
}

}  // namespace tessera
