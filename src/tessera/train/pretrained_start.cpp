#include "tessera/train/pretrained_start.h"

#include <filesystem>
#include <system_error>

#include "tessera/base/text.h"
#include "tessera/pretrained/hub_cache.h"
#include "tessera/train/compare_runs.h"
#include "tessera/train/fields.h"

namespace tessera {

void take_model(RunConfig& config, const PretrainedModel& from) {
  RunConfig theirs;
  theirs.model = from.config();
  for (const Field& field : fields()) {
    if (field.group == FieldGroup::Model && config.untold.contains(field.name))
      set_text(field, config, get_text(field, theirs), field.name);
  }
  if (config.untold.contains("vocabulary") && tokenizer_choice(config).none() &&
      Tokenizer::is_in(from.path())) {
    config.vocabulary = VocabularyKind::Tokenizer;
    config.tokenizer = from.path();
  }
}

Error with_download_hint(const Error& failure, const std::string& name) {
  std::error_code ignored;
  if (!is_hub_name(name) || std::filesystem::exists(name, ignored)) return failure;
  return failure.with(text("if it is meant as the name of a model, it is not among those that ",
                           "Hugging Face's programs have downloaded: pip install ",
                           "huggingface_hub; hf download ", name));
}

void compare_model(const RunConfig& config, const PretrainedModel& from, Problems& problems) {
  RunConfig theirs = config;
  theirs.model = from.config();
  theirs.model.context = config.model.context;
  compare_model(config, {theirs, record_of(theirs), Vocabulary::bytes(), ""}, from.path(),
                problems);
}

}  // namespace tessera
