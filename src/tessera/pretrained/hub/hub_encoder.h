#pragma once
/// Rows of names and keys that several families have, and those of BERT and the encoders after it.

#include <array>

#include "tessera/base/joined.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_keys.h"

namespace tessera {

/// How wide and how many layers are, where most families say it.
constexpr std::array<HubKey, 4> hub_layer_sizes(std::int64_t width, std::int64_t layers,
                                                std::int64_t heads, std::int64_t ffn_width) {
  return {{{.key = "hidden_size", .slot = &ModelConfig::width, .standard = width},
           {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = layers},
           {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = heads},
           {.key = "intermediate_size", .slot = &ModelConfig::ffn_width, .standard = ffn_width}}};
}

/// A rate of dropout; the small number in norms; the standard deviation of first weights.
constexpr HubKey hub_rate(std::string_view key, double ModelConfig::*slot, double standard) {
  return {.key = key, .use = HubUse::Rate, .slot = slot, .standard = standard};
}
constexpr HubKey hub_norm_eps(std::string_view key, double standard) {
  return {.key = key, .slot = &ModelConfig::norm_eps, .standard = standard, .least = 0, .most = 1};
}
constexpr HubKey hub_init_std(std::string_view key, double standard) {
  return {
      .key = key, .slot = &ModelConfig::init_std, .standard = standard, .least = 0, .most = 1e6};
}

/// HubFamily::body of encoders; and its rows that do not depend on how positions are seen.
inline constexpr HubName kHubEncoderRest[] = {
    {"embed.token.weight", "embeddings.word_embeddings.weight"},
    {"embed.norm", "embeddings.LayerNorm"},
    {"layers.#.attn.proj", "encoder.layer.#.attention.output.dense"},
    {"layers.#.norm1", "encoder.layer.#.attention.output.LayerNorm"},
    {"layers.#.mlp.up", "encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "encoder.layer.#.output.dense"},
    {"layers.#.norm2", "encoder.layer.#.output.LayerNorm"},
};
inline constexpr HubName kHubEncoderFirst[] = {
    {"embed.position.weight", "embeddings.position_embeddings.weight"},
    {"embed.type.weight", "embeddings.token_type_embeddings.weight"},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.query", HubRows::Queries},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.key", HubRows::Keys},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.self.value", HubRows::Values},
};
inline constexpr auto kHubEncoderBody = joined(kHubEncoderFirst, kHubEncoderRest);

/// The head for masked tokens that BERT has, of models with one of `heads`.
constexpr auto hub_prediction_names(TaskHead heads) {
  return std::array{
      HubName{.ours = "mlm.dense", .theirs = "cls.predictions.transform.dense", .heads = heads},
      HubName{.ours = "mlm.norm", .theirs = "cls.predictions.transform.LayerNorm", .heads = heads},
      HubName{.ours = "mlm.bias", .theirs = "cls.predictions.bias", .heads = heads}};
}
/// Heads for labels, and those of texts as a whole.
inline constexpr TaskHead kHubLabels =
    TaskHead::SequenceClassification | TaskHead::TokenClassification | TaskHead::MultipleChoice;
inline constexpr TaskHead kHubTextLabels =
    TaskHead::SequenceClassification | TaskHead::MultipleChoice;
inline constexpr HubName kHubLabelHeads[] = {
    {.ours = "classifier", .theirs = "classifier", .heads = kHubLabels},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .heads = TaskHead::QuestionAnswering},
};

/// Sizes of layers, norms and first values.
struct HubEncoderStandard {
  std::int64_t width = 768, layers = 12, heads = 12, ffn_width = 3072;
};
constexpr auto hub_encoder_keys(const HubEncoderStandard& standard) {
  const std::array others = {
      HubKey{.key = "hidden_act",
             .use = HubUse::Must,
             .standard = "gelu",
             .must = "gelu",
             .words = "gelu"},
      hub_norm_eps("layer_norm_eps", 1e-12),
      hub_init_std("initializer_range", 0.02),
  };
  return joined(
      hub_layer_sizes(standard.width, standard.layers, standard.heads, standard.ffn_width), others);
}
inline constexpr auto kHubEncoderKeys = hub_encoder_keys({});

/// Before a classifier, whatever the task; null: that of hidden layers.
inline constexpr HubKey kHubClassifierDropout = {.key = "classifier_dropout",
                                                 .use = HubUse::Rate,
                                                 .slot = &ModelConfig::classifier_dropout,
                                                 .standard = -1.0,
                                                 .null = -1.0};
/// Of models that write one text from another.
inline constexpr HubName kHubPairHeads[] = {
    {.ours = "classifier.dense",
     .theirs = "classification_head.dense",
     .heads = TaskHead::SequenceClassification},
    {.ours = "classifier.out_proj",
     .theirs = "classification_head.out_proj",
     .heads = TaskHead::SequenceClassification},
};
/// Of decoders that classify tokens, whose folders have the key where it is not this one; a folder
/// of another task says it for them too.
constexpr std::array<HubKey, 2> hub_token_dropout(double standard) {
  HubKey key{.key = "classifier_dropout",
             .use = HubUse::Rate,
             .slot = &ModelConfig::classifier_dropout,
             .standard = standard,
             .null = standard,
             .write = HubWrite::Never};
  HubKey written = key;
  written.heads = TaskHead::TokenClassification, written.write = HubWrite::Always;
  return {key, written};
}
inline constexpr auto kHubTokenDropout = hub_token_dropout(0.1);
/// Of those whose config.json has hidden_dropout: that one.
inline constexpr auto kHubHiddenTokenDropout = hub_token_dropout(-1.0);
/// Their heads for labels: of LLaMA and its heirs, and of those that call that of tokens otherwise.
inline constexpr HubName kHubScoreNames[] = {
    {.ours = "score.weight",
     .theirs = "score.weight",
     .heads = TaskHead::SequenceClassification | TaskHead::TokenClassification},
    {.ours = "score.bias", .theirs = "score.bias", .heads = TaskHead::TokenClassification}};
inline constexpr HubName kHubTwoScoreNames[] = {
    {.ours = "score.weight", .theirs = "score.weight", .heads = TaskHead::SequenceClassification},
    {.ours = "score", .theirs = "classifier", .heads = TaskHead::TokenClassification}};
/// What encoders of texts do alike.
inline constexpr HubKey kHubTextEncoderKeys[] = {
    {.key = "position_embedding_type",
     .use = HubUse::Must,
     .standard = "absolute",
     .must = "absolute",
     .words = "absolute",
     .write = HubWrite::Never},
    must_be("tie_word_embeddings", true, "the decoder is the token embedding here"),
    must_have_been("is_decoder", false, "tokens see both sides here"),
    must_have_been("add_cross_attention", false, "this family has no second stack"),
};

/// The same where that of texts is a block of two products.
inline constexpr HubName kHubBlockHeads[] = {
    {.ours = "classifier.dense",
     .theirs = "classifier.dense",
     .heads = TaskHead::SequenceClassification},
    {.ours = "classifier.out_proj",
     .theirs = "classifier.out_proj",
     .heads = TaskHead::SequenceClassification},
    {.ours = "classifier",
     .theirs = "classifier",
     .heads = TaskHead::TokenClassification | TaskHead::MultipleChoice},
    {.ours = "qa_outputs", .theirs = "qa_outputs", .heads = TaskHead::QuestionAnswering},
};

}  // namespace tessera
