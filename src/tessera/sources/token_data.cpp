#include "tessera/sources/token_data.h"

#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/config/fields/row.h"
#include "tessera/config/given_fields.h"
#include "tessera/data/dataset.h"
#include "tessera/files/other_kinds.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/token_files/token_files.h"

namespace tessera {

namespace {

Vocabulary vocabulary_of(const RunConfig& config, const Vocabulary* of_weights) {
  if (of_weights != nullptr && of_weights->made_elsewhere() != nullptr) return *of_weights;
  if (const TokenizerChoice choice = tokenizer_choice(config); !choice.none())
    return Vocabulary::tokenizer(load_tokenizer(choice));
  require(config.model.vocabulary > 0, "data '", config.data.back(),
          "' is token files, whose number of ids only their tokenizer knows; give it ",
          "with tokenizer-type and its files or tokenizer-name-or-path, or give vocab-size, as ",
          "printed by preprocess_data");
  return Vocabulary::ids(config.model.vocabulary - vocabulary_for(config.model, 0));
}

std::int64_t samples_of(const RunConfig& config) {
  return size_product({config.steps, config.global_batch_size}, "samples of the run");
}

}  // namespace

bool trains_on_token_files(const RunConfig& config) {
  return !config.data.empty() && names_token_files(config.data);
}

std::int64_t eod_token_of(const RunConfig& config, const Vocabulary& vocabulary) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  if (config.eod_token >= 0 || made == nullptr) return config.eod_token;
  return end_of_document(*made).value_or(-1);
}

void settle_token_files(RunConfig& config, const Dataset& data) {
  config.eod_token = eod_token_of(config, data.vocabulary);
  if (!data.token_files()->has(DataPart::Valid)) config.held_out = 0;
}

Dataset load_token_files(const RunConfig& config, const KnownModel& model) {
  constexpr std::string_view kWhat = "token files";
  if (config.vocabulary != VocabularyKind::Tokenizer)
    refuse_given(config, {"vocabulary"}, kWhat,
                 "their tokens are ids, so leave it out and give their tokenizer or vocab-size");
  refuse_given(config, {"held-out"}, kWhat, "give split, as 98,2,0, or valid-data");
  refuse_given(config, {"sample-order"}, kWhat, "their samples are shuffled as Megatron-LM does");
  if (!config.valid_data.empty()) {
    require(names_token_files(config.valid_data), "valid-data '", config.valid_data.front(),
            "' is a text, but data is token files; give prefixes of token files for both");
    refuse_given(config, {"split"}, "valid-data",
                 "all of data is used for training, so leave one out");
  }
  const Vocabulary vocabulary = vocabulary_of(config, model.vocabulary);
  const std::int64_t eod_token = eod_token_of(config, vocabulary);
  const bool of_documents =
      config.eod_mask_loss || config.model.reset_positions || config.model.reset_attention;
  require(!of_documents || eod_token >= 0, "eod-mask-loss, reset-position-ids and ",
          "reset-attention-mask need the token that ends a document; give eod-token, as ",
          "printed by preprocess_data");
  const std::int64_t ids =
      config.model.vocabulary > 0 ? config.model.vocabulary : vocabulary.size();
  require(eod_token < ids, "eod-token ", eod_token, " is not below vocab-size ", ids,
          "; give the one printed by preprocess_data");
  constexpr std::int64_t kMostSeed = std::numeric_limits<std::uint32_t>::max();
  require(config.seed <= kMostSeed, "seed ", config.seed, " is above ", kMostSeed,
          ", the maximum for token files; give a smaller one");
  TokenFiles files;
  files.train = open_token_source(config.data);
  if (!config.valid_data.empty()) files.valid = open_token_source(config.valid_data);
  files.split = config.split;
  files.cache = config.data_cache;
  return token_file_dataset(std::move(files), vocabulary);
}

Dataset load_test_token_files(const RunConfig& config, const Dataset& trained, bool) {
  require(names_token_files(config.test_data), "test-data '", config.test_data.front(),
          "' is a text, but data is token files; give prefixes of token files for both");
  TokenFiles files;
  files.train = files.valid = open_token_source(config.test_data);
  files.cache = config.data_cache;
  return token_file_dataset(std::move(files), trained.vocabulary);
}

void refuse_fields_of_token_files(const RunConfig& config) {
  require(!config.model.reset_positions && !config.model.reset_attention,
          "reset-position-ids and reset-attention-mask do nothing with a text, which is one ",
          "document; leave them out, or give token files (tessera preprocess_data)");
  refuse_given(config, data_fields(rows::kTokenFiles), "a text",
               "leave it out, or give token files (tessera preprocess_data)");
}

void refuse_parts_of_token_files(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const bool is_part = path.ends_with(".bin") || path.ends_with(".idx");
    const std::string kind = is_part ? other_kind_at(path) : "";
    require(kind.empty(), "'", path, "' is ", kind);
  }
}

void compare_token_order(const RunConfig& here, const RunConfig& there, const Task& task,
                         const Dataset& data, std::vector<std::string>& notices) {
  const TokenFiles& files = *data.token_files();
  if (!task.token_files) return;
  RunConfig then = there;
  const auto choices_of = [&](const RunConfig& config) {
    SampleChoices out = sample_choices(here);
    out.in_all = samples_of(config);
    return out;
  };
  if (then.epochs > 0)
    complete_epochs(then, there, task.token_files->samples_in_epoch(files, choices_of(then)));
  const auto order = [&](const RunConfig& config) {
    return task.token_files->order(files, choices_of(config));
  };
  const std::string of_here = order(here), of_then = order(then);
  if (of_here == of_then) return;
  const std::string what =
      text("steps is ", then.steps, " there and ", here.steps, " here, so samples are drawn from ",
           of_then, " there and from ", of_here, " here");
  require(here.allow_changes, "the checkpoint has seen other samples: ", what,
          "; give the same steps, with exit-interval to stop earlier, or add --allow-changes");
  notices.push_back(text("resuming with a change: ", what));
}

}  // namespace tessera
