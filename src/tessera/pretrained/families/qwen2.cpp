/// Qwen2 and Qwen2.5 as Hugging Face's folders have it.

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
constexpr std::span<const HubKey> kQwen2Blocks[] = {kQwen2Keys, kHubNoWindows};

constexpr HubClass kQwen2Classes[] = {
    {TaskHead::CausalLm, "Qwen2ForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen2ForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubQwen2 = {
    .model_type = "qwen2",
    .classes = kQwen2Classes,
    .base_class = "Qwen2Model",
    .family = &kQwen2,
    .prefix = "model.",
    .names = kHubRotaryNames,
    .ties = kHubRotaryTies,
    .unread = kHubRotaryUnread,
    .keys = kQwen2Blocks,
    .harmless = kHubUnusedWindows,
    .read = read_rotary_without_windows,
    .write = write_rotary,
    .grouped_queries = true,
    .ends_by_padding = true,
};

}  // namespace tessera
