/// LLaMA as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kLlama;

namespace {

constexpr auto kLlamaKeys = hub_rotary_keys({.width = 4096,
                                             .layers = 32,
                                             .heads = 32,
                                             .kv_heads = 0,
                                             .ffn_width = 11008,
                                             .vocabulary = 32000,
                                             .context = 2048});
constexpr HubKey kLlamaOwnKeys[] = {
    kHubSilu,
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 0, .null = 0},
    {.key = "mlp_bias", .slot = &ModelConfig::ffn_bias, .standard = false},
};
constexpr std::span<const HubKey> kLlamaBlocks[] = {kLlamaKeys, kLlamaOwnKeys};

constexpr HubClass kLlamaClasses[] = {
    {TaskHead::CausalLm, "LlamaForCausalLM"},
    {TaskHead::SequenceClassification, "LlamaForSequenceClassification"},
    {TaskHead::TokenClassification, "LlamaForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubLlama = hub_rotary_family({
    .model_type = "llama",
    .classes = kLlamaClasses,
    .base_class = "LlamaModel",
    .family = &kLlama,
    .keys = kLlamaBlocks,
    .harmless = "pretraining_tp",
    .read = read_rotary,
    .write = write_rotary,
});

}  // namespace tessera
