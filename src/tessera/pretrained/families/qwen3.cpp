/// Qwen3 as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kQwen3;

namespace {

constexpr auto kQwen3Keys = hub_rotary_keys({.width = 4096,
                                             .layers = 32,
                                             .heads = 32,
                                             .kv_heads = 32,
                                             .ffn_width = 22016,
                                             .vocabulary = 151936,
                                             .context = 32768});
constexpr HubKey kQwen3OwnKeys[] = {
    kHubSilu,
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 128},
};
constexpr std::span<const HubKey> kQwen3Blocks[] = {kQwen3Keys, kQwen3OwnKeys, kHubSwitchedWindows};

constexpr HubClass kQwen3Classes[] = {
    {TaskHead::CausalLm, "Qwen3ForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen3ForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubQwen3 = hub_rotary_family({
    .model_type = "qwen3",
    .classes = kQwen3Classes,
    .base_class = "Qwen3Model",
    .family = &kQwen3,
    .keys = kQwen3Blocks,
    .read = read_rotary_with_switch,
    .write = write_rotary_with_switch,
});

}  // namespace tessera
