/// StarCoder2 as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kStarcoder2;

namespace {

constexpr auto kStarcoder2Keys = hub_decoder_keys({.width = 3072,
                                                   .layers = 30,
                                                   .heads = 24,
                                                   .kv_heads = 2,
                                                   .ffn_width = 12288,
                                                   .vocabulary = 49152,
                                                   .context = 4096,
                                                   .init_std = 0.018042,
                                                   .tied = true});
constexpr HubKey kStarcoder2OwnKeys[] = {
    hub_activation("hidden_act", "gelu_pytorch_tanh"),
    hub_kv_heads(2),
    hub_norm_eps("norm_epsilon", 1e-5),
    hub_window(0),
    {.key = "use_bias", .slot = &ModelConfig::bias, .standard = true},
    hub_rate("residual_dropout", &ModelConfig::dropout, 0.0),
    {.key = "embedding_dropout",
     .use = HubUse::Same,
     .slot = &ModelConfig::dropout,
     .standard = 0.0},
};
constexpr std::span<const HubKey> kStarcoder2Blocks[] = {kStarcoder2Keys, kStarcoder2OwnKeys,
                                                         kHubTokenDropout};

constexpr HubName kStarcoder2Own[] = {
    {"layers.#.norm1", "model.layers.#.input_layernorm"},
    {"layers.#.norm2", "model.layers.#.post_attention_layernorm"},
    {"layers.#.mlp.up.weight", "model.layers.#.mlp.c_fc.weight"},
    {.ours = "layers.#.mlp.up.bias",
     .theirs = "model.layers.#.mlp.c_fc.bias",
     .is_in = has_ffn_bias},
    {"layers.#.mlp.down.weight", "model.layers.#.mlp.c_proj.weight"},
    {.ours = "layers.#.mlp.down.bias",
     .theirs = "model.layers.#.mlp.c_proj.bias",
     .is_in = has_ffn_bias},
    {"norm", "model.norm"},
};
constexpr auto kStarcoder2Names = joined(kHubDecoderNames, kHubOutNames, kStarcoder2Own);

constexpr HubClass kStarcoder2Classes[] = {
    {TaskHead::CausalLm, "Starcoder2ForCausalLM"},
    {TaskHead::SequenceClassification, "Starcoder2ForSequenceClassification"},
    {TaskHead::TokenClassification, "Starcoder2ForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubStarcoder2 = hub_rotary_family({
    .model_type = "starcoder2",
    .classes = kStarcoder2Classes,
    .base_class = "Starcoder2Model",
    .family = &kStarcoder2,
    .names = kStarcoder2Names,
    .keys = kStarcoder2Blocks,
    .read = read_rotary,
    .write = write_rotary,
});

}  // namespace tessera
