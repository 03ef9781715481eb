#pragma once
/// Folders with Megatron-LM's own names and layouts: config.json has its arguments, model_type, and
/// checkpoint_version. tools/convert_megatron.py writes them; they are only read here.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

/// Each key-value head has its queries, its key and its value, as here.
inline constexpr HubName kMegatronLmLayers[] = {
    {"embed.token.weight", "embedding.word_embeddings.weight"},
    {"layers.#.norm1.weight", "encoder.layers.#.input_layernorm.weight"},
    {"layers.#.attn.qkv.weight", "encoder.layers.#.self_attention.query_key_value.weight"},
    {"layers.#.attn.proj.weight", "encoder.layers.#.self_attention.dense.weight"},
    {"layers.#.norm2.weight", "encoder.layers.#.post_attention_layernorm.weight"},
    {"layers.#.mlp.down.weight", "encoder.layers.#.mlp.dense_4h_to_h.weight"},
    {"norm.weight", "encoder.final_layernorm.weight"},
};
/// Of layers with biases, learned positions and one product before GELU.
inline constexpr HubName kMegatronLmFirst[] = {
    {"embed.position.weight", "embedding.position_embeddings.weight"},
    {"layers.#.norm1.bias", "encoder.layers.#.input_layernorm.bias"},
    {"layers.#.attn.qkv.bias", "encoder.layers.#.self_attention.query_key_value.bias"},
    {"layers.#.attn.proj.bias", "encoder.layers.#.self_attention.dense.bias"},
    {"layers.#.norm2.bias", "encoder.layers.#.post_attention_layernorm.bias"},
    {"layers.#.mlp.up", "encoder.layers.#.mlp.dense_h_to_4h"},
    {"layers.#.mlp.down.bias", "encoder.layers.#.mlp.dense_4h_to_h.bias"},
    {"norm.bias", "encoder.final_layernorm.bias"},
};

/// The first versions' names; then Megatron-core's, where Transformer Engine's layers have the norm
/// before them within.
inline constexpr HubSpelling kMegatronLmSpellings[] = {
    {"transformer.", "encoder."},
    {".attention.", ".self_attention."},
    {".input_norm.", ".input_layernorm."},
    {".post_attention_norm.", ".post_attention_layernorm."},
    {".final_norm.", ".final_layernorm."},
    {"lm_head.norm.", "lm_head.layernorm."},
    {"decoder.", "encoder."},
    {".self_attention.linear_qkv.layer_norm_", ".input_layernorm."},
    {".mlp.linear_fc1.layer_norm_", ".post_attention_layernorm."},
    {".pre_mlp_layernorm.", ".post_attention_layernorm."},
    {".self_attention.linear_qkv.", ".self_attention.query_key_value."},
    {".self_attention.linear_proj.", ".self_attention.dense."},
    {".mlp.linear_fc1.", ".mlp.dense_h_to_4h."},
    {".mlp.linear_fc2.", ".mlp.dense_4h_to_h."},
    {"lm_head.layer_norm.", "lm_head.layernorm."},
    {"output_layer.bias", "lm_head.bias"},
};

/// What Transformer Engine says of its layers.
inline constexpr std::string_view kMegatronLmUnread[] = {"*._extra_state"};

constexpr HubKey hub_off(std::string_view key, std::string_view why) {
  return {.key = key,
          .use = HubUse::Must,
          .standard = false,
          .null = false,
          .must = false,
          .why = why,
          .write = HubWrite::Never};
}
constexpr HubKey hub_needed(std::string_view key, std::int64_t ModelConfig::*slot) {
  return {.key = key, .slot = slot, .standard = std::int64_t{1}, .required = true};
}
inline constexpr std::string_view kMegatronLmOther = "other numbers are computed here";

inline constexpr HubKey kMegatronLmKeys[] = {
    hub_needed("num_layers", &ModelConfig::layers),
    hub_needed("hidden_size", &ModelConfig::width),
    hub_needed("num_attention_heads", &ModelConfig::heads),
    hub_needed("padded_vocab_size", &ModelConfig::vocabulary),
    {.key = "checkpoint_version", .use = HubUse::Own, .required = true},
    {.key = "layernorm_epsilon",
     .slot = &ModelConfig::norm_eps,
     .standard = 1e-5,
     .also = "norm_epsilon",
     .least = 0,
     .most = 1},
    hub_init_std("init_method_std", 0.02),
    hub_rate("hidden_dropout", &ModelConfig::dropout, 0.1),
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.1),
    {.key = "kv_channels", .use = HubUse::Own, .shapes = true},
    hub_off("apply_layernorm_1p", "norms multiply by their weight here, not by 1 more"),
    hub_off("apply_residual_connection_post_layernorm", "what is added to is not normed here"),
    hub_off("multi_latent_attention", "queries, keys and values are one product here"),
    hub_off("qk_layernorm", "queries and keys are not normed here"),
    hub_off("squared_relu", "the activation is another one here"),
    {.key = "num_experts",
     .use = HubUse::Must,
     .standard = std::int64_t{0},
     .null = std::int64_t{0},
     .must = std::int64_t{0},
     .why = "there are no experts here"},
    hub_off("activation_func_clamp_value", kMegatronLmOther),
    hub_off("attention_output_gate", kMegatronLmOther),
    hub_off("embedding_multiplier", kMegatronLmOther),
    hub_off("experimental_attention_variant", kMegatronLmOther),
    hub_off("glu_linear_offset", kMegatronLmOther),
    hub_off("heterogeneous_layers_config_path", kMegatronLmOther),
    hub_off("heterogeneous_layers_config_encoded_json", kMegatronLmOther),
    hub_off("hybrid_override_pattern", kMegatronLmOther),
    hub_off("is_hybrid_model", kMegatronLmOther),
    hub_off("linear_attention_freq", kMegatronLmOther),
    hub_off("log_scaling", kMegatronLmOther),
    hub_off("mtp_num_layers", kMegatronLmOther),
    hub_off("no_rope_freq", kMegatronLmOther),
    hub_off("quick_geglu", kMegatronLmOther),
    hub_off("retro_add_retriever", kMegatronLmOther),
    hub_off("rotary_seq_len_interpolation_factor", kMegatronLmOther),
    hub_off("window_size", kMegatronLmOther),
    {.key = "softmax_type",
     .use = HubUse::Must,
     .standard = "vanilla",
     .null = "vanilla",
     .must = "vanilla",
     .words = "vanilla"},
};
/// Of layers as GPT's and BERT's first versions have them.
inline constexpr HubKey kMegatronLmFirstKeys[] = {
    hub_needed("max_position_embeddings", &ModelConfig::positions),
    {.key = "ffn_hidden_size",
     .slot = &ModelConfig::ffn_width,
     .standard = std::int64_t{0},
     .null = std::int64_t{0}},
    {.key = "normalization",
     .use = HubUse::Must,
     .standard = "LayerNorm",
     .must = "LayerNorm",
     .words = "LayerNorm"},
    {.key = "position_embedding_type",
     .use = HubUse::Must,
     .standard = "learned_absolute",
     .must = "learned_absolute",
     .words = "learned_absolute"},
    must_be("add_bias_linear", true, "linear layers have biases here"),
    hub_off("swiglu", "the activation is GELU here"),
    hub_off("use_rotary_position_embeddings", "positions are learned here"),
    {.key = "bias_gelu_fusion", .use = HubUse::Own},
    {.key = "openai_gelu", .use = HubUse::Own},
};

/// Of GPT's.
inline constexpr HubName kMegatronLmGptNames[] = {
    {.ours = "head.weight", .theirs = "output_layer.weight", .heads = TaskHead::CausalLm}};
// The last stage of a pipeline has a copy of the table.
inline constexpr HubTie kMegatronLmGptTies[] = {
    {"language_model.embedding.word_embeddings.weight", "output_layer.weight", true,
     TaskHead::CausalLm},
    {"language_model.embedding.word_embeddings.weight", "word_embeddings_for_head.weight"}};

inline constexpr HubKey kMegatronLmGptKeys[] = {
    {.key = "untie_embeddings_and_output_weights", .use = HubUse::Own, .shapes = true},
    {.key = "group_query_attention", .use = HubUse::Own, .shapes = true},
    {.key = "num_query_groups", .use = HubUse::Own, .shapes = true},
};
inline constexpr HubClass kMegatronLmGptClasses[] = {{TaskHead::CausalLm, "GPTModel"}};

/// By them whoever wrote the folder chose its names, or how numbers are rounded; or they are of a
/// model that another row reads.
inline constexpr std::string_view kMegatronLmHarmless =
    "use_legacy_models use_mcore_models apply_query_key_layer_scaling attention_softmax_in_fp32 "
    "fp32_residual_connection onnx_safe seq_length make_vocab_size_divisible_by num_tokentypes "
    "num_query_groups bias_gelu_fusion openai_gelu";

/// Whether a switch is on. Errors: HubConfig's.
bool is_on(const HubConfig& from, std::string_view key, bool standard);
/// By checkpoint_version. Errors: HubConfig's; one that is not read.
void require_layout(const HubConfig& from);
/// Errors: HubConfig's; heads of another width than the model's.
void require_usual_heads(const HubConfig& from, const ModelConfig& model);
/// What kMegatronLmGptKeys say. Errors: HubConfig's; a layout that is not read.
void read_megatron_lm_gpt(const HubConfig& from, ModelConfig& to);

constexpr HubFamily megatron_lm_folders(HubFamily with) {
  with.prefix = "language_model.";
  with.spellings = kMegatronLmSpellings;
  with.unread = kMegatronLmUnread;
  with.harmless = kMegatronLmHarmless;
  with.only_read = with.refuses_unused = true;
  return with;
}

}  // namespace tessera
