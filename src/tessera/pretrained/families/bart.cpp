/// BART as Hugging Face's folders have it: BartForConditionalGeneration.

#include "tessera/pretrained/families/bart.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

extern const ModelFamily kBart;

namespace {

constexpr auto kBartNames = joined(kBartTable, kBartPositions, kHubPairHeads);

constexpr HubConstant kBartZeros[] = {{.name = "final_logits_bias",
                                       .why = "zeros, as no value is added there",
                                       .shape = [](const ModelConfig& model) -> Shape {
                                         return {1, model.vocabulary};
                                       },
                                       .heads = TaskHead::Seq2SeqLm}};

constexpr HubKey kBartOwnKeys[] = {
    must_have_been("extra_pos_embeddings", 2, "two rows before the first position are not read"),
    {.key = "bos_token_id", .use = HubUse::Own},
    hub_rate("classifier_dropout", &ModelConfig::classifier_dropout, 0.0),
};
constexpr std::span<const HubKey> kBartBlocks[] = {kBartKeys, kBartFormKeys<BartForm{}, 50265>,
                                                   kBartOwnKeys};

/// Of a model whose texts begin with nothing bos_token_id is null.
void read_bart(const HubConfig& from, ModelConfig& to) {
  TranslationTokens tokens = read_bart_stacks(from, {1, 2, 2}, to);
  const bool none = from.find("bos_token_id") != nullptr && !from.has("bos_token_id");
  if (!none) tokens.first = from.id("bos_token_id", 0);
  to.special_tokens = to_text(tokens);
}

void write_bart(const ModelConfig& from, HubJson& to) {
  write_bart_stacks(from, to);
  const TranslationTokens tokens = translation_tokens(from);
  to["bos_token_id"] = nullptr;
  if (tokens.first) to["bos_token_id"] = to["forced_bos_token_id"] = *tokens.first;
}

constexpr HubClass kBartClasses[] = {
    {TaskHead::Seq2SeqLm, "BartForConditionalGeneration"},
    {TaskHead::SequenceClassification, "BartForSequenceClassification"}};

}  // namespace

double bart_sine(const ModelConfig& model, std::int64_t i) {
  const std::int64_t half = model.width / 2, row = i / model.width, column = i % model.width;
  const double angle =
      static_cast<double>(row) /
      std::pow(10'000, 2 * static_cast<double>(column % half) / static_cast<double>(model.width));
  return column < half ? std::sin(angle) : std::cos(angle);
}

TranslationTokens read_bart_stacks(const HubConfig& from, TranslationTokens standard,
                                   ModelConfig& to) {
  if (to.decoder_heads == to.heads) to.decoder_heads = 0;
  if (to.decoder_ffn_width == to.ffn_width) to.decoder_ffn_width = 0;
  return read_pair_tokens(from, standard, to.vocabulary);
}

void write_bart_stacks(const ModelConfig& from, HubJson& to) {
  write_pair_tokens(from, to);
  to["forced_eos_token_id"] = to["eos_token_id"];
}

extern constinit const HubFamily kHubBart = bart_folders({
    .model_type = "bart",
    .classes = kBartClasses,
    .base_class = "BartModel",
    .family = &kBart,
    .names = kBartNames,
    .constants = kBartZeros,
    .keys = kBartBlocks,
    .read = read_bart,
    .write = write_bart,
});

}  // namespace tessera
