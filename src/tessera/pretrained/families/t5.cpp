/// T5 as Hugging Face's folders have it: T5ForConditionalGeneration, versions 1.0 and 1.1, which is
/// Flan-T5's too.

#include "tessera/pretrained/families/t5.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/joined.h"
#include "tessera/base/text.h"

namespace tessera {

extern const ModelFamily kT5;

namespace {

constexpr HubKey kT5Scaled[] = {
    {.key = "tie_word_embeddings", .use = HubUse::Own},
    {.key = "scale_decoder_outputs", .use = HubUse::Own},
};
constexpr auto kT5Keys = t5_keys(
    {.ffn_width = 2048, .layers = 6, .heads = 8, .vocabulary = 32128, .activation = kT5Relu});
constexpr std::span<const HubKey> kT5Blocks[] = {kT5Keys, kT5Scaled};

/// What version 4 and later derive from feed_forward_proj, and write beside it: it must agree.
void judge_t5_activation(const HubConfig& from, const ModelConfig& to) {
  const std::string wanted = has_t5_gates(to) ? "gelu_new" : "relu";
  const auto differs = [&](std::string_view key, std::string_view value) {
    from.refuse(key, text("feed_forward_proj ", to.activation, " makes it ", value));
  };
  if (from.find("dense_act_fn") != nullptr && from.word("dense_act_fn") != wanted)
    differs("dense_act_fn", wanted);
  if (from.find("is_gated_act") != nullptr && from.truth("is_gated_act") != has_t5_gates(to))
    differs("is_gated_act", has_t5_gates(to) ? "true" : "false");
}

/// As version 5 does: tie_word_embeddings says whether logits are scaled, unless the other key
/// does; the head is the table unless the weights have one of its own.
void read_t5(const HubConfig& from, ModelConfig& to) {
  bool scaled = true;
  if (from.has("tie_word_embeddings")) scaled = from.truth("tie_word_embeddings");
  if (from.find("scale_decoder_outputs") != nullptr) scaled = from.truth("scale_decoder_outputs");
  read_t5_version(from, scaled ? 0 : 1, std::nullopt, to);
}

void write_t5(const ModelConfig& from, HubJson& to) {
  const double scale = tied_logit_scale(from);
  const bool scaled = scale != 1;
  require(!scaled || scale == 1 / std::sqrt(static_cast<double>(from.width)),
          "export: logit-scale is ", scale, "; transformers' T5 supports only 1 and 1/sqrt(width)");
  // Version 4 knows the first key alone, by which it means both; in a file of version 5, which has
  // the second, it is true whatever the head.
  if (!to.contains("scale_decoder_outputs")) to["tie_word_embeddings"] = scaled;
  to["scale_decoder_outputs"] = scaled;
  write_t5_version(from, to);
}

constexpr HubClass kT5Classes[] = {
    {TaskHead::Seq2SeqLm, "T5ForConditionalGeneration"},
    {TaskHead::SequenceClassification, "T5ForSequenceClassification"}};

}  // namespace

void read_t5_version(const HubConfig& from, double logit_scale, std::optional<std::int32_t> start,
                     ModelConfig& to) {
  judge_t5_activation(from, to);
  to.tied_head = true;
  to.logit_scale = logit_scale;
  to.special_tokens = to_text(
      read_pair_tokens(from, {0, start.value_or(from.id("pad_token_id", 0)), 1}, to.vocabulary));
}

void write_t5_version(const ModelConfig& from, HubJson& to) {
  to["dense_act_fn"] = has_t5_gates(from) ? "gelu_new" : "relu";
  to["is_gated_act"] = has_t5_gates(from);
  write_pair_tokens(from, to);
}

extern constinit const HubFamily kHubT5 = t5_folders({
    .model_type = "t5",
    .classes = kT5Classes,
    .base_class = "T5Model",
    .family = &kT5,
    .keys = kT5Blocks,
    .read = read_t5,
    .write = write_t5,
});

}  // namespace tessera
