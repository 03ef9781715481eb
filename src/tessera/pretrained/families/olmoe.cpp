/// OLMoE as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_experts.h"

namespace tessera {

extern const ModelFamily kOlmoe;

namespace {

constexpr HubExperts kOlmoeExperts = {.key = "num_experts",
                                      .also = "num_local_experts",
                                      .experts = 64,
                                      .chosen = 8,
                                      .says_norm = true,
                                      .balance = 0.01};

constexpr auto kOlmoeKeys = hub_rotary_keys({.width = 2048,
                                             .layers = 16,
                                             .heads = 16,
                                             .kv_heads = 0,
                                             .ffn_width = 2048,
                                             .vocabulary = 50304,
                                             .context = 4096,
                                             .norm_eps = 1e-5});
constexpr HubKey kOlmoeOwnKeys[] = {
    kHubSilu,
    must_be("attention_bias", false, "attention has no biases here"),
    {.key = "clip_qkv", .use = HubUse::Own},
    hub_expert_key("norm_topk_prob"),
    hub_expert_key(kOlmoeExperts.key, true),
    hub_expert_key(kOlmoeExperts.also, true),
};
constexpr std::span<const HubKey> kOlmoeBlocks[] = {kOlmoeKeys, kOlmoeOwnKeys, kHubExpertKeys};

constexpr HubClass kOlmoeClasses[] = {{TaskHead::CausalLm, "OlmoeForCausalLM"}};

void read_olmoe(const HubConfig& from, ModelConfig& to) {
  if (from.has("clip_qkv"))
    from.refuse("clip_qkv", "queries, keys and values have no bounds here; it must be null");
  read_rotary(from, to);
  read_experts(from, kOlmoeExperts, to);
}

void write_olmoe(const ModelConfig& from, HubJson& to) {
  write_rotary(from, to);
  write_experts(from, kOlmoeExperts, to);
}

}  // namespace

extern constinit const HubFamily kHubOlmoe = hub_rotary_family({
    .model_type = "olmoe",
    .classes = kOlmoeClasses,
    .base_class = "OlmoeModel",
    .family = &kOlmoe,
    .names = kHubSparseNames,
    .keys = kOlmoeBlocks,
    .read = read_olmoe,
    .write = write_olmoe,
});

}  // namespace tessera
