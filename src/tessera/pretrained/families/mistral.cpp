/// Mistral as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kMistral;

namespace {

constexpr auto kMistralKeys = hub_rotary_keys({.width = 4096,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .ffn_width = 14336,
                                               .vocabulary = 32000,
                                               .context = 131072});
constexpr HubKey kMistralOwnKeys[] = {
    kHubSilu,
    hub_window(4096),
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 0, .null = 0},
};
constexpr std::span<const HubKey> kMistralBlocks[] = {kMistralKeys, kMistralOwnKeys};

constexpr HubClass kMistralClasses[] = {
    {TaskHead::CausalLm, "MistralForCausalLM"},
    {TaskHead::SequenceClassification, "MistralForSequenceClassification"},
    {TaskHead::TokenClassification, "MistralForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubMistral = hub_rotary_family({
    .model_type = "mistral",
    .classes = kMistralClasses,
    .base_class = "MistralModel",
    .family = &kMistral,
    .keys = kMistralBlocks,
    .read = read_rotary,
    .write = write_rotary,
});

}  // namespace tessera
