/// Qwen3-MoE as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_experts.h"

namespace tessera {

extern const ModelFamily kQwen3Moe;

namespace {

constexpr HubExperts kQwen3Experts = {.key = "num_experts",
                                      .also = "num_local_experts",
                                      .experts = 128,
                                      .chosen = 8,
                                      .says_norm = true,
                                      .width = 768};

constexpr auto kQwen3MoeKeys = hub_rotary_keys({.width = 2048,
                                                .layers = 24,
                                                .heads = 32,
                                                .kv_heads = 4,
                                                .ffn_width = 6144,
                                                .vocabulary = 151936,
                                                .context = 32768});
constexpr HubKey kQwen3MoeOwnKeys[] = {
    kHubSilu,
    kHubAttentionBias,
    {.key = "head_dim",
     .slot = &ModelConfig::head_width,
     .standard = std::int64_t{0},
     .null = std::int64_t{0}},
    hub_expert_key(kQwen3Experts.key, true),
    hub_expert_key(kQwen3Experts.also, true),
};
constexpr std::span<const HubKey> kQwen3MoeBlocks[] = {
    kQwen3MoeKeys, kQwen3MoeOwnKeys, kHubExpertKeys, kHubSparseKeys, kHubSwitchedWindows};

constexpr HubClass kQwen3MoeClasses[] = {
    {TaskHead::CausalLm, "Qwen3MoeForCausalLM"},
    {TaskHead::SequenceClassification, "Qwen3MoeForSequenceClassification"},
    {TaskHead::TokenClassification, "Qwen3MoeForTokenClassification"}};

/// transformers reads no key that says which layers have windows: all have.
void read_qwen3_moe(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  to.window = switched_window(from);
  constexpr const char* kFirst = "max_window_layers";
  if (to.window > 0 && from.has(kFirst) && from.whole(kFirst, 0, 1 << 24) > 0)
    from.refuse(kFirst,
                "layers before it have no window in version 4 of transformers, and have one in "
                "version 5; write 0, or switch use_sliding_window off");
  if (to.window > 0 && from.has("layer_types")) {
    read_layer_types(from, to);
    if (to.window == 0 || to.global_every > 0)
      from.refuse("layer_types",
                  "transformers gives all layers the window of use_sliding_window, "
                  "whatever it says; remove it");
  }
  read_experts(from, kQwen3Experts, to);
}

void write_qwen3_moe(const ModelConfig& from, HubJson& to) {
  require(
      from.window == 0 || from.global_every == 0,
      "export: transformers' Qwen3-MoE has windows in all layers, or in none, and this model in "
      "some (global-every)");
  write_rotary_with_switch(from, to);
  write_experts(from, kQwen3Experts, to);
}

}  // namespace

extern constinit const HubFamily kHubQwen3Moe = hub_rotary_family({
    .model_type = "qwen3_moe",
    .classes = kQwen3MoeClasses,
    .base_class = "Qwen3MoeModel",
    .family = &kQwen3Moe,
    .names = kHubSparseNames,
    .keys = kQwen3MoeBlocks,
    .read = read_qwen3_moe,
    .write = write_qwen3_moe,
});

}  // namespace tessera
