#pragma once
/// How decoders that are built as LLaMA is are written in Hugging Face's folders.

#include <array>

#include "tessera/models/layer.h"
#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

inline bool has_qkv_bias(const ModelConfig& model) { return layer_of(model).qkv_bias; }
inline bool has_proj_bias(const ModelConfig& model) { return layer_of(model).proj_bias; }
inline bool has_ffn_bias(const ModelConfig& model) { return layer_of(model).ffn_bias; }
inline bool has_head_norm(const ModelConfig& model) { return layer_of(model).head_norm; }

inline constexpr HubName kHubRotaryNames[] = {
    {"embed.token.weight", "model.embed_tokens.weight"},
    {"layers.#.norm1.weight", "model.layers.#.input_layernorm.weight"},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.q_proj.weight", HubRows::Queries},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.k_proj.weight", HubRows::Keys},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.v_proj.weight", HubRows::Values},
    {"layers.#.attn.proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.q_proj.bias", HubRows::Queries,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.k_proj.bias", HubRows::Keys,
     HubOrder::OutIn, has_qkv_bias},
    {"layers.#.attn.qkv.bias", "model.layers.#.self_attn.v_proj.bias", HubRows::Values,
     HubOrder::OutIn, has_qkv_bias},
    {.ours = "layers.#.attn.proj.bias",
     .theirs = "model.layers.#.self_attn.o_proj.bias",
     .is_in = has_proj_bias},
    {.ours = "layers.#.attn.q_norm.weight",
     .theirs = "model.layers.#.self_attn.q_norm.weight",
     .is_in = has_head_norm},
    {.ours = "layers.#.attn.k_norm.weight",
     .theirs = "model.layers.#.self_attn.k_norm.weight",
     .is_in = has_head_norm},
    {"layers.#.norm2.weight", "model.layers.#.post_attention_layernorm.weight"},
    {"layers.#.mlp.gate.weight", "model.layers.#.mlp.gate_proj.weight"},
    {"layers.#.mlp.up.weight", "model.layers.#.mlp.up_proj.weight"},
    {"layers.#.mlp.down.weight", "model.layers.#.mlp.down_proj.weight"},
    {.ours = "layers.#.mlp.gate.bias",
     .theirs = "model.layers.#.mlp.gate_proj.bias",
     .is_in = has_ffn_bias},
    {.ours = "layers.#.mlp.up.bias",
     .theirs = "model.layers.#.mlp.up_proj.bias",
     .is_in = has_ffn_bias},
    {.ours = "layers.#.mlp.down.bias",
     .theirs = "model.layers.#.mlp.down_proj.bias",
     .is_in = has_ffn_bias},
    {"norm.weight", "model.norm.weight"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    {.ours = "score.weight", .theirs = "score.weight", .heads = TaskHead::SequenceClassification},
};

inline constexpr HubTie kHubRotaryTies[] = {
    {"model.embed_tokens.weight", "lm_head.weight", true, TaskHead::CausalLm}};

// Frequencies of positions, which older files hold.
inline constexpr std::string_view kHubRotaryUnread[] = {"layers.*.self_attn.rotary_emb.inv_freq"};

/// What transformers takes where a key is missing.
struct HubRotarySizes {
  std::int64_t width, layers, heads, kv_heads, ffn_width, vocabulary, context;
};
constexpr auto hub_rotary_keys(const HubRotarySizes& standard) {
  return std::array{
      HubKey{.key = "hidden_size", .slot = &ModelConfig::width, .standard = standard.width},
      HubKey{.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = standard.layers},
      HubKey{.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = standard.heads},
      HubKey{.key = "num_key_value_heads",
             .slot = &ModelConfig::kv_heads,
             .standard = standard.kv_heads,
             .null = std::int64_t{0}},
      HubKey{.key = "intermediate_size",
             .slot = &ModelConfig::ffn_width,
             .standard = standard.ffn_width},
      HubKey{
          .key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = standard.vocabulary},
      hub_norm_eps("rms_norm_eps", 1e-6),
      hub_init_std("initializer_range", 0.02),
      hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
      HubKey{.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = false},
      HubKey{.key = "hidden_act",
             .use = HubUse::Must,
             .standard = "silu",
             .must = "silu",
             .words = "silu"},
      // Where positions are rotary, a number only for the users of the file.
      HubKey{.key = "max_position_embeddings",
             .slot = &ModelConfig::context,
             .standard = standard.context,
             .write = HubWrite::IfMissing},
      HubKey{.key = "rope_theta", .use = HubUse::Own},
      HubKey{.key = "rope_scaling", .use = HubUse::Own},
      HubKey{.key = "rope_parameters", .use = HubUse::Own},
      must_have_been("partial_rotary_factor", 1.0, "all channels of a head are rotated here"),
  };
}
inline constexpr HubKey kHubAttentionBias = {
    .key = "attention_bias", .slot = &ModelConfig::attention_bias, .standard = false};

/// Keys of Qwen's: windows, in later layers or in those that layer_types names, which are off.
inline constexpr HubKey kHubNoWindows[] = {
    must_be("use_sliding_window", false, "every token sees all before it here"),
    {.key = "layer_types", .use = HubUse::Own},
};
inline constexpr std::string_view kHubUnusedWindows = "sliding_window max_window_layers";

/// Positions and the width of heads. Errors: HubConfig's; scaled positions.
void read_rotary(const HubConfig& from, ModelConfig& to);
/// The same, and layer_types. Errors: layers with windows.
void read_rotary_without_windows(const HubConfig& from, ModelConfig& to);
/// Both spellings: of version 4, and of version 5.
void write_rotary(const ModelConfig& from, HubJson& to);

}  // namespace tessera
