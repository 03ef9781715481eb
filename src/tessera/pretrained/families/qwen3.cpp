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
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 128},
};
constexpr std::span<const HubKey> kQwen3Blocks[] = {kQwen3Keys, kHubNoWindows, kQwen3OwnKeys};

constexpr HubClass kQwen3Classes[] = {
    {TaskHead::CausalLm, "Qwen3ForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen3ForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubQwen3 = {
    .model_type = "qwen3",
    .classes = kQwen3Classes,
    .base_class = "Qwen3Model",
    .family = &kQwen3,
    .prefix = "model.",
    .names = kHubRotaryNames,
    .ties = kHubRotaryTies,
    .unread = kHubRotaryUnread,
    .keys = kQwen3Blocks,
    .harmless = kHubUnusedWindows,
    .read = read_rotary_without_windows,
    .write =
        [](const ModelConfig& from, HubJson& to) {
          write_rotary(from, to);
          to["head_dim"] = from.head_dim();  // transformers' standard is 128
        },
    .grouped_queries = true,
    .ends_by_padding = true,
};

}  // namespace tessera
