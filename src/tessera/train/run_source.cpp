#include "tessera/train/run_source.h"

#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/config/family_fields.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/models/family.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/compare_runs.h"
#include "tessera/train/output_check.h"
#include "tessera/train/pretrained_start.h"

namespace tessera {

namespace {

/// Every byte of it is read before anything is compiled. `base`: as of BaseOptions::at.
Source open_source(const std::string& path, const char* words, const OwnFamilies& families,
                   RecordedUse use, const std::string& base = "") {
  return naming_intact(path, words, recorded_run_judge(families, use), [&] {
    Checkpoint checkpoint = open_with_base(path, {.at = base});
    require_intact(checkpoint);
    RecordedRun run = recorded_run(checkpoint, families, use);
    return Source{std::move(checkpoint), std::move(run)};
  });
}

}  // namespace

Source open_init(const RunConfig& config) {
  try {
    return open_source(config.init_from, "--init-from", config.families, RecordedUse::Weights);
  } catch (const Error& failure) {
    throw with_download_hint(failure, config.init_from);
  }
}

namespace {

/// There is no data here to count the vocabulary of.
void take_vocabulary(ModelConfig& model, const RecordedRun& from) {
  if (model.vocabulary == 0) model.vocabulary = from.config.model.vocabulary;
}
void take_vocabulary(ModelConfig&, const PretrainedModel&) {}

}  // namespace

InitModel take_init_model(RunConfig& config, Problems& problems,
                          std::vector<std::string>& notices) {
  InitModel out;
  if (config.init_from.empty()) return out;
  const auto compared = [&](const auto& base, const auto&... path) {
    take_model(config, base);
    take_vocabulary(config.model, base);
    RunConfig whole = config;
    complete(whole);
    compare_model(whole, base, path..., problems);
  };
  problems.gather([&] {
    if (is_hub_folder(config)) {
      const PretrainedModel model = open_pretrained(config, OpenPretrained::Weights::IfThere);
      for (const std::string& notice : model.notices()) notices.push_back(notice);
      out.labels = model.labels();
      return compared(model);
    }
    try {
      const RecordedRun run =
          naming_intact(config.init_from, "--init-from",
                        recorded_run_judge(config.families, RecordedUse::Weights), [&] {
                          const Checkpoint checkpoint = Checkpoint::open(config.init_from);
                          out.checkpoint = checkpoint.path();
                          return recorded_run(checkpoint, config.families, RecordedUse::Weights);
                        });
      out.vocabulary = run.vocabulary;
      out.labels = run.labels;
      compared(run, out.checkpoint);
    } catch (const Error& failure) {
      throw with_download_hint(failure, config.init_from);
    }
  });
  return out;
}

std::optional<Source> find_source(const RunConfig& config, Problems& problems,
                                  std::vector<std::string>& notices) {
  std::optional<Source> out;
  if (config.resume == "none") return out;
  problems.gather([&] {
    std::optional<std::string> path = config.resume;
    if (config.resume == "auto")
      path = latest_checkpoint(checkpoints_folder(config), &notices,
                               recorded_run_judge(config.families));
    if (!path) return refuse_other_names(config);
    const std::string base = PretrainedModel::is_at(config.init_from) ? config.init_from : "";
    out.emplace(open_source(*path, "--resume", config.families, RecordedUse::Training, base));
  });
  return out;
}

namespace {

/// Of a model that is to see fewer tokens than it was trained on, whose table stays as it is.
void keep_positions(ModelConfig& model, const ModelConfig& from,
                    const std::set<std::string, std::less<>>& defaulted) {
  if (defaulted.contains("positions") && reads_field(from, "positions") &&
      model.context < from.most_positions())
    model.positions = from.most_positions();
  if (defaulted.contains("source-positions") && reads_field(from, "source-positions") &&
      model.source() < from.most_source_positions())
    model.source_positions = from.most_source_positions();
}

}  // namespace

void take_model(RunConfig& config, const RecordedRun& from) {
  for (const Field& field : fields()) {
    if (field.group != FieldGroup::Model && field.on_resume != OnResume::Model) continue;
    if (config.defaulted.contains(field.name)) copy_field(field, config, from.config);
  }
  if (config.defaulted.contains("image-processor"))
    config.image_processor = from.config.image_processor;
  keep_positions(config.model, from.config.model, config.defaulted);
  forget_unread_fields(config);  // sizes that the family derives, as the context of vit
  // Follow from the packing of its documents.
  if (from.config.packing == to_text(Packing::Bfd)) {
    if (config.defaulted.contains("reset-position-ids")) config.model.reset_positions = false;
    if (config.defaulted.contains("reset-attention-mask")) config.model.reset_attention = false;
  }
  if (config.vocabulary == VocabularyKind::Tokenizer && tokenizer_choice(config).none()) {
    config.tokenizer = from.config.tokenizer;
    config.tokenizer_type = from.config.tokenizer_type;
    config.vocab_file = from.config.vocab_file;
    config.merge_file = from.config.merge_file;
    config.vocab_extra_ids = from.config.vocab_extra_ids;
  }
  // As many as the data had: stays open in config.toml.
  if (config.defaulted.contains("vocab-size") && from.vocabulary.kind() != VocabularyKind::Bpe &&
      from.config.model.vocabulary == vocabulary_for(from.config.model, from.vocabulary))
    config.model.vocabulary = 0;
  // A preset leaves the size open; that of learned tokens is not to be found in the data.
  if (config.model.vocabulary == 0 && from.vocabulary.kind() == VocabularyKind::Bpe)
    config.model.vocabulary = from.config.model.vocabulary;
}

void take_f32_products(RunConfig& config, const RunConfig& from) {
  const auto theirs = find_word<F32Products>(kF32ProductNames, from.f32_products);
  if (!theirs || !config.choices || config.f32_products != "auto") return;
  CpuChoices& choices = *config.choices;
  choices.f32_products = *theirs;
  choices = choices.at_most(choices.isa);
  if (choices.f32_products == *theirs) config.f32_reason = "as in the checkpoint";
}

void check_tokenizer(const RunConfig& config, const Vocabulary& recorded, const std::string& path,
                     Problems& problems) {
  const Tokenizer* const theirs = recorded.made_elsewhere();
  const TokenizerChoice choice = tokenizer_choice(config);
  if (choice.none() || (theirs != nullptr && !is_there(choice))) return;
  problems.gather([&] {
    if (theirs != nullptr && load_tokenizer(choice).files() == theirs->files()) return;
    fail(Fault::Checkpoint, "tokenizer '", name_of(choice), "' is not the one of checkpoint '",
         path, "', whose weights belong to ",
         theirs == nullptr ? text("the vocabulary ", to_text(recorded.kind()))
                           : std::string("other files"),
         "; leave the tokenizer out, as the checkpoint has its own");
  });
}

}  // namespace tessera
