/// Qwen2-MoE as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_experts.h"

namespace tessera {

extern const ModelFamily kQwen2Moe;

namespace {

constexpr HubExperts kQwen2Experts = {.key = "num_experts",
                                      .experts = 60,
                                      .chosen = 4,
                                      .says_norm = true,
                                      .width = 1408,
                                      .shared = true};

constexpr auto kQwen2MoeKeys = hub_rotary_keys({.width = 2048,
                                                .layers = 24,
                                                .heads = 16,
                                                .kv_heads = 16,
                                                .ffn_width = 5632,
                                                .vocabulary = 151936,
                                                .context = 32768});
constexpr HubKey kQwen2MoeOwnKeys[] = {
    kHubSilu,
    must_be("qkv_bias", true, "queries, keys and values have biases here"),
    hub_expert_key("shared_expert_intermediate_size", true),
    hub_expert_key(kQwen2Experts.key, true),
};
constexpr std::span<const HubKey> kQwen2MoeBlocks[] = {
    kQwen2MoeKeys, kQwen2MoeOwnKeys, kHubExpertKeys, kHubSparseKeys, kHubSwitchedWindows};

constexpr HubClass kQwen2MoeClasses[] = {
    {TaskHead::CausalLm, "Qwen2MoeForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen2MoeForSequenceClassification"},
    {TaskHead::TokenClassification, "Qwen2MoeForTokenClassification"}};

/// Where no layer_types say it, transformers gives every second layer a window, the first one too, up
/// to max_window_layers.
void read_windows(const HubConfig& from, ModelConfig& to) {
  constexpr const char* kEnd = "max_window_layers";
  to.window = switched_window(from);
  if (to.window == 0 || from.has("layer_types")) return read_layer_types(from, to);
  const std::int64_t end = from.has(kEnd) ? from.whole(kEnd, 0, 1 << 24) : 28;
  if (end == 0) to.window = 0;
  if (to.window > 0 && end < to.layers)
    from.refuse(kEnd,
                "layers before it would have windows by turns, and those behind it none; here "
                "windows go on to the last layer, or layer_types says where they are");
  if (to.window > 0 && to.layers > 1) to.global_every = 2;
}

void read_qwen2_moe(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  read_windows(from, to);
  read_experts(from, kQwen2Experts, to);
  constexpr const char* kShared = "shared_expert_intermediate_size";
  to.experts.shared_width = from.has(kShared) ? from.whole(kShared, 1, 1 << 24) : 5632;
  to.experts.shared_gate = true;
}

void write_qwen2_moe(const ModelConfig& from, HubJson& to) {
  write_rotary_with_switch(from, to);
  write_experts(from, kQwen2Experts, to);
  to["shared_expert_intermediate_size"] = from.experts.shared_width;
  to["qkv_bias"] = true;
  if (from.window == 0) to["sliding_window"] = 0;
}

}  // namespace

extern constinit const HubFamily kHubQwen2Moe = hub_rotary_family({
    .model_type = "qwen2_moe",
    .classes = kQwen2MoeClasses,
    .base_class = "Qwen2MoeModel",
    .family = &kQwen2Moe,
    .names = kHubSparseNames,
    .keys = kQwen2MoeBlocks,
    .read = read_qwen2_moe,
    .write = write_qwen2_moe,
});

}  // namespace tessera
