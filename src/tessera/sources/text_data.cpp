#include "tessera/sources/text_data.h"

#include "tessera/sources/dialogue_data.h"
#include "tessera/sources/token_data.h"

namespace tessera {

Dataset load_text_data(const RunConfig& config, const KnownModel& model) {
  refuse_fields_of_token_files(config);
  refuse_parts_of_token_files(config.data);
  refuse_listed_dialogues(config);
  const double held_out = config.valid_data.empty() ? config.held_out : 0;
  Dataset out = [&] {
    if (model.vocabulary == nullptr)
      return load_dataset(config.data, vocabulary_choice(config), held_out);
    try {
      return load_dataset(config.data, *model.vocabulary, held_out);
    } catch (const Error& error) {
      throw in_vocabulary_of(model, error);
    }
  }();
  if (!config.valid_data.empty()) hold_out(out, config.valid_data);
  return out;
}

Dataset load_test_text_data(const RunConfig& config, const Dataset& trained, bool) {
  refuse_parts_of_token_files(config.test_data);
  return load_test_text(config.test_data, trained.vocabulary);
}

std::string text_data_digest(const RunConfig& config, VocabularyKind kind) {
  return text_digest(config.data, kind);
}

}  // namespace tessera
