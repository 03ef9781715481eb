/// Mixtral as Hugging Face's folders have it: a tensor for each matrix of each expert.

#include "tessera/pretrained/hub/hub_experts.h"

namespace tessera {

extern const ModelFamily kMixtral;

namespace {

constexpr HubExperts kMixtralExperts = {.key = "num_local_experts", .experts = 8, .chosen = 2};

constexpr auto kMixtralKeys = hub_rotary_keys({.width = 4096,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .ffn_width = 14336,
                                               .vocabulary = 32000,
                                               .context = 131072,
                                               .norm_eps = 1e-5});
constexpr HubKey kMixtralOwnKeys[] = {
    kHubSilu,
    {.key = "sliding_window",
     .slot = &ModelConfig::window,
     .standard = std::int64_t{0},
     .null = std::int64_t{0}},
    {.key = "head_dim",
     .slot = &ModelConfig::head_width,
     .standard = std::int64_t{0},
     .null = std::int64_t{0}},
    hub_expert_key(kMixtralExperts.key, true),
    must_be("router_jitter_noise", 0.0, "routers here read tokens without noise"),
};
constexpr std::span<const HubKey> kMixtralBlocks[] = {kMixtralKeys, kMixtralOwnKeys,
                                                      kHubExpertKeys};

constexpr HubName kMixtralRouter[] = {
    {"layers.#.mlp.router.weight", "model.layers.#.block_sparse_moe.gate.weight"}};
constexpr auto kMixtralNames =
    joined(kHubRotaryNames, kMixtralRouter,
           hub_expert_names("model.layers.#.block_sparse_moe.experts.@.w1.weight",
                            "model.layers.#.block_sparse_moe.experts.@.w3.weight",
                            "model.layers.#.block_sparse_moe.experts.@.w2.weight"));

constexpr HubClass kMixtralClasses[] = {
    {TaskHead::CausalLm, "MixtralForCausalLM"},
    {TaskHead::SequenceClassification, "MixtralForSequenceClassification"},
    {TaskHead::TokenClassification, "MixtralForTokenClassification"}};

void read_mixtral(const HubConfig& from, ModelConfig& to) {
  read_rotary(from, to);
  const bool in_object = from.has("rope_parameters") &&
                         from.json()["rope_parameters"].is_object() &&
                         from.json()["rope_parameters"].contains("rope_theta");
  if (!from.has("rope_theta") && !in_object) to.rope_base = 1e6;
  read_experts(from, kMixtralExperts, to);
}

void write_mixtral(const ModelConfig& from, HubJson& to) {
  write_rotary(from, to);
  write_experts(from, kMixtralExperts, to);
}

}  // namespace

extern constinit const HubFamily kHubMixtral = hub_rotary_family({
    .model_type = "mixtral",
    .classes = kMixtralClasses,
    .base_class = "MixtralModel",
    .family = &kMixtral,
    .names = kMixtralNames,
    .keys = kMixtralBlocks,
    .read = read_mixtral,
    .write = write_mixtral,
});

}  // namespace tessera
