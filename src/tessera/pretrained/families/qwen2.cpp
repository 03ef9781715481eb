/// Qwen2 as Hugging Face's folders have it.

#include "tessera/pretrained/families/qwen.h"

namespace tessera {

extern const ModelFamily kQwen2;

namespace {

constexpr HubKey kQwen2OwnKeys[] = {
    kHubSilu,
};
constexpr std::span<const HubKey> kQwen2Blocks[] = {kQwenKeys, kQwen2OwnKeys, kHubSwitchedWindows};

constexpr HubClass kQwen2Classes[] = {
    {TaskHead::CausalLm, "Qwen2ForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen2ForSequenceClassification"},
    {TaskHead::TokenClassification, "Qwen2ForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubQwen2 = hub_qwen_family({
    .model_type = "qwen2",
    .classes = kQwen2Classes,
    .base_class = "Qwen2Model",
    .family = &kQwen2,
    .keys = kQwen2Blocks,
});

}  // namespace tessera
