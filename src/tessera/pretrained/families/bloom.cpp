/// BLOOM as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kBloom;

namespace {

/// Each head has its query, its key and its value, as here.
constexpr HubName kBloomNames[] = {
    {"embed.token.weight", "transformer.word_embeddings.weight"},
    {"embed.norm", "transformer.word_embeddings_layernorm"},
    {"layers.#.norm1", "transformer.h.#.input_layernorm"},
    {"layers.#.attn.qkv", "transformer.h.#.self_attention.query_key_value"},
    {"layers.#.attn.proj", "transformer.h.#.self_attention.dense"},
    {"layers.#.norm2", "transformer.h.#.post_attention_layernorm"},
    {"layers.#.mlp.up", "transformer.h.#.mlp.dense_h_to_4h"},
    {"layers.#.mlp.down", "transformer.h.#.mlp.dense_4h_to_h"},
    {"norm", "transformer.ln_f"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    kHubTwoScoreNames[0],
    kHubTwoScoreNames[1],
};
constexpr HubTie kBloomTies[] = {
    {"transformer.word_embeddings.weight", "lm_head.weight", true, TaskHead::CausalLm}};

constexpr HubKey kBloomKeys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 64, .also = "n_embed"},
    {.key = "n_layer", .slot = &ModelConfig::layers, .standard = 2, .also = "num_hidden_layers"},
    {.key = "n_head", .slot = &ModelConfig::heads, .standard = 8, .also = "num_attention_heads"},
    {.key = "vocab_size", .slot = &ModelConfig::vocabulary, .standard = 250880},
    hub_norm_eps("layer_norm_epsilon", 1e-5),
    hub_init_std("initializer_range", 0.02),
    hub_rate("hidden_dropout", &ModelConfig::dropout, 0.0),
    hub_rate("attention_dropout", &ModelConfig::attention_dropout, 0.0),
    {.key = "tie_word_embeddings", .slot = &ModelConfig::tied_head, .standard = true},
    must_be("apply_residual_connection_post_layernorm", false,
            "what is added to is not normed here"),
    must_have_been("attention_softmax_in_fp32", true, "attention is computed in f32"),
    must_have_been("masked_softmax_fusion", true, "no number depends on it"),
};
constexpr std::span<const HubKey> kBloomBlocks[] = {kBloomKeys, kHubHiddenTokenDropout};

constexpr HubClass kBloomClasses[] = {
    {TaskHead::CausalLm, "BloomForCausalLM"},
    {TaskHead::SequenceClassification, "BloomForSequenceClassification"},
    {TaskHead::TokenClassification, "BloomForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubBloom = {
    .model_type = "bloom",
    .classes = kBloomClasses,
    .base_class = "BloomModel",
    .family = &kBloom,
    .prefix = "transformer.",
    .names = kBloomNames,
    .ties = kBloomTies,
    .keys = kBloomBlocks,
    .harmless =
        "pretraining_tp slow_but_exact seq_length skip_bias_add skip_bias_add_qkv "
        "n_inner offset_alibi unk_token_id",
    .ends_by_padding = true,
};

}  // namespace tessera
