#pragma once
/// How decoders that are built as LLaMA is are written in Hugging Face's folders.

#include <array>

#include "tessera/base/joined.h"
#include "tessera/models/layer.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

// Which parameters a layer has.
template <bool TransformerLayer::*What>
bool in_layer(const ModelConfig& model) {
  return layer_of(model).*What;
}
template <bool TransformerLayer::*What>
bool has_bias(const ModelConfig& model) {
  const TransformerLayer layer = layer_of(model);
  return layer.bias || layer.*What;
}
inline constexpr auto has_qkv_bias = has_bias<&TransformerLayer::qkv_bias>;
inline constexpr auto has_proj_bias = has_bias<&TransformerLayer::proj_bias>;
inline constexpr auto has_ffn_bias = has_bias<&TransformerLayer::ffn_bias>;
inline bool has_head_norm(const ModelConfig& model) {
  const TransformerLayer layer = layer_of(model);
  return layer.head_norm || layer.norm_together;
}
inline constexpr auto has_norm_out = in_layer<&TransformerLayer::norm_out>;
inline bool lacks_experts(const ModelConfig& model) { return !has_experts(model); }
inline bool has_dense_bias(const ModelConfig& model) {
  return has_ffn_bias(model) && lacks_experts(model);
}
inline bool lacks_norm_out(const ModelConfig& model) { return !has_norm_out(model); }

/// Table of tokens, heads, and the parts of attention whose names many families share.
inline constexpr HubName kHubDecoderNames[] = {
    {"embed.token.weight", "model.embed_tokens.weight"},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.q_proj.weight", HubRows::Queries},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.k_proj.weight", HubRows::Keys},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.v_proj.weight", HubRows::Values},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.q_proj.bias", HubRows::Queries,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.k_proj.bias", HubRows::Keys,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.v_proj.bias", HubRows::Values,
     HubOrder::OutIn, has_qkv_bias},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    kHubScoreNames[0],
    kHubScoreNames[1],
};
inline constexpr HubName kHubOutNames[] = {
    {"layers.#.attn.proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {.ours = "layers.#.attn.proj.bias",
     .theirs = "model.layers.#.self_attn.o_proj.bias",
     .is_in = has_proj_bias},
};
/// Of layers with RMS norms and gated feed-forward.
inline constexpr HubName kHubGatedNames[] = {
    {"layers.#.norm1.weight", "model.layers.#.input_layernorm.weight"},
    {.ours = "layers.#.attn.q_norm.weight",
     .theirs = "model.layers.#.self_attn.q_norm.weight",
     .is_in = has_head_norm},
    {.ours = "layers.#.attn.k_norm.weight",
     .theirs = "model.layers.#.self_attn.k_norm.weight",
     .is_in = has_head_norm},
    {.ours = "layers.#.norm2.weight",
     .theirs = "model.layers.#.post_attention_layernorm.weight",
     .is_in = lacks_norm_out},
    {.ours = "layers.#.norm1_out.weight",
     .theirs = "model.layers.#.post_attention_layernorm.weight",
     .is_in = has_norm_out},
    {.ours = "layers.#.norm2.weight",
     .theirs = "model.layers.#.pre_feedforward_layernorm.weight",
     .is_in = has_norm_out},
    {.ours = "layers.#.norm2_out.weight",
     .theirs = "model.layers.#.post_feedforward_layernorm.weight",
     .is_in = has_norm_out},
    {.ours = "layers.#.mlp.gate.weight",
     .theirs = "model.layers.#.mlp.gate_proj.weight",
     .is_in = lacks_experts},
    {.ours = "layers.#.mlp.up.weight",
     .theirs = "model.layers.#.mlp.up_proj.weight",
     .is_in = lacks_experts},
    {.ours = "layers.#.mlp.down.weight",
     .theirs = "model.layers.#.mlp.down_proj.weight",
     .is_in = lacks_experts},
    {.ours = "layers.#.mlp.gate.bias",
     .theirs = "model.layers.#.mlp.gate_proj.bias",
     .is_in = has_dense_bias},
    {.ours = "layers.#.mlp.up.bias",
     .theirs = "model.layers.#.mlp.up_proj.bias",
     .is_in = has_dense_bias},
    {.ours = "layers.#.mlp.down.bias",
     .theirs = "model.layers.#.mlp.down_proj.bias",
     .is_in = has_dense_bias},
    {"norm.weight", "model.norm.weight"},
};
inline constexpr auto kHubRotaryNames = joined(kHubDecoderNames, kHubOutNames, kHubGatedNames);

inline constexpr HubTie kHubRotaryTies[] = {
    {"model.embed_tokens.weight", "lm_head.weight", true, TaskHead::CausalLm}};

// Frequencies of positions, which older files hold.
inline constexpr std::string_view kHubRotaryUnread[] = {"layers.*.self_attn.rotary_emb.inv_freq"};

/// What transformers takes where a key is missing.
struct HubRotaryStandard {
  std::int64_t width, layers, heads, kv_heads, ffn_width, vocabulary, context;
  double norm_eps = 1e-6, init_std = 0.02;
  bool tied = false;
};
/// Sizes and rates.
constexpr auto hub_decoder_keys(const HubRotaryStandard& standard) {
  const std::array others = {
      HubKey{
          .key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = standard.vocabulary},
      hub_init_std("initializer_range", standard.init_std),
      hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
      HubKey{
          .key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = standard.tied},
      // Where positions are rotary, a number only for the users of the file.
      HubKey{.key = "max_position_embeddings",
             .slot = &ModelConfig::context,
             .standard = standard.context,
             .write = HubWrite::IfMissing},
      HubKey{.key = "rope_theta", .use = HubUse::Own},
      HubKey{.key = "rope_scaling", .use = HubUse::Own},
      HubKey{.key = "rope_parameters", .use = HubUse::Own},
      HubKey{.key = "partial_rotary_factor", .use = HubUse::Own},
      HubKey{.key = "original_max_position_embeddings", .use = HubUse::Own},
  };
  return joined(
      hub_layer_sizes(standard.width, standard.layers, standard.heads, standard.ffn_width), others);
}
constexpr HubKey hub_kv_heads(std::int64_t standard) {
  return {.key = "num_key_value_heads",
          .slot = &ModelConfig::kv_heads,
          .standard = standard,
          .null = std::int64_t{0}};
}
constexpr HubKey hub_activation(std::string_view key, std::string_view is) {
  return {.key = key, .use = HubUse::Must, .standard = is, .must = is, .words = is};
}
/// Of LLaMA's heirs.
constexpr auto hub_rotary_keys(const HubRotaryStandard& standard) {
  const HubKey more[] = {hub_kv_heads(standard.kv_heads),
                         hub_norm_eps("rms_norm_eps", standard.norm_eps)};
  return joined(hub_decoder_keys(standard), more, kHubTokenDropout);
}
inline constexpr HubKey kHubSilu = hub_activation("hidden_act", "silu");
inline constexpr HubKey kHubAttentionBias = {
    .key = "attention_bias", .slot = &ModelConfig::attention_bias, .standard = false};

inline constexpr HubKey kHubOneSided = {
    .key = "use_bidirectional_attention",
    .use = HubUse::Must,
    .standard = false,
    .null = false,
    .must = false,
    .why = "a token sees those before it here",
    .write = HubWrite::Never,
};

/// Windows, which some files name and do not use.
inline constexpr HubKey kHubSwitchedWindows[] = {
    {.key = "use_sliding_window", .use = HubUse::Own},
    {.key = "sliding_window", .use = HubUse::Own},
    {.key = "max_window_layers", .use = HubUse::Own},
    {.key = "layer_types", .use = HubUse::Own},
};
constexpr HubKey hub_window(std::int64_t standard) {
  return {.key = "sliding_window",
          .slot = &ModelConfig::window,
          .standard = standard,
          .null = std::int64_t{0}};
}

/// Positions and the width of heads. Errors: HubConfig's.
void read_rotary(const HubConfig& from, ModelConfig& to);
/// Where older files have the bases of layers without windows and with them; and what they are in
/// files that say nothing.
struct HubRotaryBases {
  const char *key = "rope_theta", *local_key = "rope_local_base_freq";
  double standard = 1e6, local_standard = 10'000;
};
/// The same, of layers with windows and layers without. Errors: scaled ones of the former.
void read_rotary_of_kinds(const HubConfig& from, ModelConfig& to, const HubRotaryBases& bases = {});
/// layer_types, where the file has it. Errors: layers of other kinds, or in another order than
/// global_every says. `windows`: which keys say of windows what these do not.
void read_layer_types(const HubConfig& from, ModelConfig& to,
                      std::string_view windows =
                          "sliding_window, and use_sliding_window where there is one, say whether "
                          "layers have windows");
/// Positions and layer_types.
void read_rotary_in_layers(const HubConfig& from, ModelConfig& to);
/// The window that use_sliding_window switches on; 0: none.
std::int64_t switched_window(const HubConfig& from);
/// Positions, and windows by kHubSwitchedWindows.
void read_rotary_with_switch(const HubConfig& from, ModelConfig& to);
/// Both spellings: of version 4, and of version 5.
void write_rotary(const ModelConfig& from, HubJson& to);
void write_rotary_of_kinds(const ModelConfig& from, HubJson& to, const HubRotaryBases& bases = {});
void write_layer_types(const ModelConfig& from, HubJson& to);
void write_rotary_in_layers(const ModelConfig& from, HubJson& to);
void write_rotary_with_switch(const ModelConfig& from, HubJson& to);

/// What families have alike that are named as LLaMA is.
constexpr HubFamily hub_rotary_family(HubFamily with) {
  with.prefix = "model.";
  if (with.names.empty()) with.names = kHubRotaryNames;
  with.ties = kHubRotaryTies;
  with.unread = kHubRotaryUnread;
  with.grouped_queries = with.ends_by_padding = true;
  return with;
}

}  // namespace tessera
