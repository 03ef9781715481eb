#pragma once
/// What the folders of T5's versions have alike.

#include "tessera/base/joined.h"
#include "tessera/models/families/t5.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_pairs.h"

namespace tessera {

inline bool has_t5_gates(const ModelConfig& model) { return model.activation == kT5GatedGelu; }
inline bool has_no_t5_gates(const ModelConfig& model) { return !has_t5_gates(model); }

// The numbers of positions are in the first layer of a stack, and all of its layers use them.
inline constexpr HubName kT5Body[] = {
    {"embed.token.weight", "shared.weight"},
    {"embed.relative.weight",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"encoder.layers.#.norm1.weight", "encoder.block.#.layer.0.layer_norm.weight"},
    {"encoder.layers.#.attn.qkv.weight", "encoder.block.#.layer.0.SelfAttention.q.weight",
     HubRows::Queries},
    {"encoder.layers.#.attn.qkv.weight", "encoder.block.#.layer.0.SelfAttention.k.weight",
     HubRows::Keys},
    {"encoder.layers.#.attn.qkv.weight", "encoder.block.#.layer.0.SelfAttention.v.weight",
     HubRows::Values},
    {"encoder.layers.#.attn.proj.weight", "encoder.block.#.layer.0.SelfAttention.o.weight"},
    {"encoder.layers.#.norm2.weight", "encoder.block.#.layer.1.layer_norm.weight"},
    {"encoder.layers.#.mlp.gate.weight", "encoder.block.#.layer.1.DenseReluDense.wi_0.weight",
     HubRows::All, HubOrder::OutIn, has_t5_gates},
    {"encoder.layers.#.mlp.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi_1.weight",
     HubRows::All, HubOrder::OutIn, has_t5_gates},
    {"encoder.layers.#.mlp.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi.weight",
     HubRows::All, HubOrder::OutIn, has_no_t5_gates},
    {"encoder.layers.#.mlp.down.weight", "encoder.block.#.layer.1.DenseReluDense.wo.weight"},
    {"encoder.norm.weight", "encoder.final_layer_norm.weight"},
    {"embed_target.relative.weight",
     "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"decoder.layers.#.norm1.weight", "decoder.block.#.layer.0.layer_norm.weight"},
    {"decoder.layers.#.attn.qkv.weight", "decoder.block.#.layer.0.SelfAttention.q.weight",
     HubRows::Queries},
    {"decoder.layers.#.attn.qkv.weight", "decoder.block.#.layer.0.SelfAttention.k.weight",
     HubRows::Keys},
    {"decoder.layers.#.attn.qkv.weight", "decoder.block.#.layer.0.SelfAttention.v.weight",
     HubRows::Values},
    {"decoder.layers.#.attn.proj.weight", "decoder.block.#.layer.0.SelfAttention.o.weight"},
    {"decoder.layers.#.norm_cross.weight", "decoder.block.#.layer.1.layer_norm.weight"},
    {"decoder.layers.#.cross.q.weight", "decoder.block.#.layer.1.EncDecAttention.q.weight"},
    {"decoder.layers.#.cross.kv.weight", "decoder.block.#.layer.1.EncDecAttention.k.weight",
     HubRows::CrossKeys},
    {"decoder.layers.#.cross.kv.weight", "decoder.block.#.layer.1.EncDecAttention.v.weight",
     HubRows::CrossValues},
    {"decoder.layers.#.cross.proj.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight"},
    {"decoder.layers.#.norm2.weight", "decoder.block.#.layer.2.layer_norm.weight"},
    {"decoder.layers.#.mlp.gate.weight", "decoder.block.#.layer.2.DenseReluDense.wi_0.weight",
     HubRows::All, HubOrder::OutIn, has_t5_gates},
    {"decoder.layers.#.mlp.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi_1.weight",
     HubRows::All, HubOrder::OutIn, has_t5_gates},
    {"decoder.layers.#.mlp.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi.weight",
     HubRows::All, HubOrder::OutIn, has_no_t5_gates},
    {"decoder.layers.#.mlp.down.weight", "decoder.block.#.layer.2.DenseReluDense.wo.weight"},
    {"decoder.norm.weight", "decoder.final_layer_norm.weight"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::Seq2SeqLm},
};
inline constexpr auto kT5Names = joined(kT5Body, kHubPairHeads);
// Models with labels hold the others as a part.
inline constexpr HubSpelling kT5Spellings[] = {{"transformer.", ""}};

inline constexpr HubTie kT5Ties[] = {
    {"shared.weight", "encoder.embed_tokens.weight"},
    {"shared.weight", "decoder.embed_tokens.weight"},
    {"shared.weight", "lm_head.weight", true, TaskHead::Seq2SeqLm}};

// Numbers of positions that old files have between encoder and decoder, where nothing reads them.
inline constexpr std::string_view kT5Unread[] = {
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};

/// What a version is where config.json does not say it.
struct T5Standard {
  std::int64_t ffn_width, layers, heads, vocabulary;
  std::string_view activation;
};

constexpr auto t5_keys(const T5Standard& standard) {
  const HubKey keys[] = {
      {.key = "d_model", .slot = &ModelConfig::width, .standard = 512, .also = "hidden_size"},
      {.key = "num_heads",
       .slot = &ModelConfig::heads,
       .standard = standard.heads,
       .also = "num_attention_heads"},
      {.key = "d_kv", .slot = &ModelConfig::head_width, .standard = 64, .also = "head_dim"},
      {.key = "d_ff", .slot = &ModelConfig::ffn_width, .standard = standard.ffn_width},
      {.key = "num_layers",
       .slot = &ModelConfig::layers,
       .standard = standard.layers,
       .also = "num_hidden_layers"},
      {.key = "num_decoder_layers", .slot = &ModelConfig::decoder_layers, .standard = 0, .null = 0},
      {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = standard.vocabulary},
      {.key = "relative_attention_num_buckets",
       .slot = &ModelConfig::distance_kinds,
       .standard = 32},
      {.key = "relative_attention_max_distance",
       .slot = &ModelConfig::far_distance,
       .standard = 128},
      hub_norm_eps("layer_norm_epsilon", 1e-6),
      hub_init_std("initializer_factor", 1.0),
      hub_rate("dropout_rate", &ModelConfig::dropout, 0.1),
      hub_rate("classifier_dropout", &ModelConfig::classifier_dropout, 0.0),
      {.key = "feed_forward_proj",
       .slot = &ModelConfig::activation,
       .standard = standard.activation,
       .words = "relu gated-gelu"},
      // A length of samples that version 4 named; positions have no end.
      {.key = "n_positions",
       .slot = &ModelConfig::context,
       .standard = kMostHubContext,
       .write = HubWrite::Never},
      must_have_been("is_decoder", false, "there are an encoder and a decoder here"),
      {.key = "dense_act_fn", .use = HubUse::Own},
      {.key = "is_gated_act", .use = HubUse::Own},
      {.key = "pad_token_id", .use = HubUse::Own},
      {.key = "decoder_start_token_id", .use = HubUse::Own},
      {.key = "eos_token_id", .use = HubUse::Own},
  };
  return std::to_array(keys);
}

/// Reads the rows of HubUse::Own. Logits are multiplied by `logit_scale`, as ModelConfig has it; a
/// text begins with `start` where nothing says it, or with padding.
void read_t5_version(const HubConfig& from, double logit_scale, std::optional<std::int32_t> start,
                     ModelConfig& to);
void write_t5_version(const ModelConfig& from, HubJson& to);

/// `with`: keys, tasks' classes, and what reads and writes them.
constexpr HubFamily t5_folders(HubFamily with) {
  with.names = kT5Names;
  with.label_prefix = "transformer.";
  with.spellings = kT5Spellings;
  with.ties = kT5Ties;
  with.unread = kT5Unread;
  with.untie = [](ModelConfig& model) {
    const double scale = tied_logit_scale(model);
    model.tied_head = false;
    model.logit_scale = scale == 1 ? 0 : scale;
  };
  // Version 1.1, of which version 5 of transformers too writes that it is tied.
  with.has_own_head = [](const ModelConfig& model) { return tied_logit_scale(model) == 1; };
  return with;
}

}  // namespace tessera
