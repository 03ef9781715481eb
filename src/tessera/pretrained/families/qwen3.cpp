/// Qwen3 as Hugging Face's folders have it.

#include "tessera/pretrained/families/qwen.h"

namespace tessera {

extern const ModelFamily kQwen3;

namespace {

constexpr HubKey kQwen3OwnKeys[] = {
    kHubSilu,
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 128},
};
constexpr std::span<const HubKey> kQwen3Blocks[] = {kQwenKeys, kQwen3OwnKeys, kHubSwitchedWindows};

constexpr HubClass kQwen3Classes[] = {
    {TaskHead::CausalLm, "Qwen3ForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen3ForSequenceClassification"},
    {TaskHead::TokenClassification, "Qwen3ForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubQwen3 = hub_qwen_family({
    .model_type = "qwen3",
    .classes = kQwen3Classes,
    .base_class = "Qwen3Model",
    .family = &kQwen3,
    .keys = kQwen3Blocks,
});

}  // namespace tessera
