/// Qwen2 as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kQwen2;

namespace {

constexpr auto kQwen2Keys = hub_rotary_keys({.width = 4096,
                                             .layers = 32,
                                             .heads = 32,
                                             .kv_heads = 32,
                                             .ffn_width = 22016,
                                             .vocabulary = 151936,
                                             .context = 32768});
constexpr HubKey kQwen2OwnKeys[] = {
    kHubSilu,
};
constexpr std::span<const HubKey> kQwen2Blocks[] = {kQwen2Keys, kQwen2OwnKeys, kHubSwitchedWindows};

constexpr HubClass kQwen2Classes[] = {
    {TaskHead::CausalLm, "Qwen2ForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen2ForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubQwen2 = hub_rotary_family({
    .model_type = "qwen2",
    .classes = kQwen2Classes,
    .base_class = "Qwen2Model",
    .family = &kQwen2,
    .keys = kQwen2Blocks,
    .read = read_rotary_with_switch,
    .write = write_rotary_with_switch,
});

}  // namespace tessera
