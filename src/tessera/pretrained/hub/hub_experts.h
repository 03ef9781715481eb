#pragma once
/// What families whose feed-forward layers are experts have alike in Hugging Face's folders.

#include <string_view>

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

/// Keys that read_experts reads, and what transformers takes where one is missing.
struct HubExperts {
  std::string_view key;        // how many experts a layer has
  std::string_view also = {};  // another name of it
  std::int64_t experts = 0, chosen = 0;
  bool says_norm =
      false;  // norm_topk_prob says whether weights of the chosen are divided by their sum
  /// Hidden channels of an expert, where moe_intermediate_size says them and mlp_only_layers and
  /// decoder_sparse_step which layers have experts; 0: intermediate_size says them, and all have.
  std::int64_t width = 0;
  bool shared = false;  // all tokens read one, too, which has a gate
  double balance = 0.001;
};

/// Rows of HubUse::Own that read_experts and write_experts answer for.
constexpr HubKey hub_expert_key(std::string_view key, bool shapes = false) {
  return {.key = key, .use = HubUse::Own, .shapes = shapes};
}
inline constexpr HubKey kHubExpertKeys[] = {
    hub_expert_key("num_experts_per_tok"),
    hub_expert_key("router_aux_loss_coef"),
    hub_expert_key("output_router_logits"),
};
/// The same, of families whose files say of each layer whether it has experts.
inline constexpr HubKey kHubSparseKeys[] = {
    hub_expert_key("decoder_sparse_step", true),
    hub_expert_key("mlp_only_layers", true),
    hub_expert_key("moe_intermediate_size", true),
    hub_expert_key("norm_topk_prob"),
};

/// The loss of uneven loads is a part of transformers' loss only where router logits are an output.
/// It is one number for all layers and sequences there; here each layer and sequence has its own.
/// Errors: HubConfig's.
void read_experts(const HubConfig& from, const HubExperts& keys, ModelConfig& to);
/// Errors: Fault::Usage: a router or a shared expert that the family lacks, or has and the model not.
void write_experts(const ModelConfig& from, const HubExperts& keys, HubJson& to);

/// Rows of experts: `gate`, `up` and `down` are the names of their matrices.
constexpr std::array<HubName, 3> hub_expert_names(std::string_view gate, std::string_view up,
                                                  std::string_view down) {
  return {{{"layers.#.mlp.experts.gate.weight", gate, HubRows::Expert},
           {"layers.#.mlp.experts.up.weight", up, HubRows::Expert},
           {"layers.#.mlp.experts.down.weight", down, HubRows::Expert}}};
}

/// Of Qwen's versions.
inline bool has_shared_expert(const ModelConfig& model) { return model.experts.shared_width > 0; }
inline constexpr HubName kHubSparseOthers[] = {
    {.ours = "layers.#.mlp.router.weight",
     .theirs = "model.layers.#.mlp.gate.weight",
     .is_in = has_experts},
    {.ours = "layers.#.mlp.shared.gate.weight",
     .theirs = "model.layers.#.mlp.shared_expert.gate_proj.weight",
     .is_in = has_shared_expert},
    {.ours = "layers.#.mlp.shared.up.weight",
     .theirs = "model.layers.#.mlp.shared_expert.up_proj.weight",
     .is_in = has_shared_expert},
    {.ours = "layers.#.mlp.shared.down.weight",
     .theirs = "model.layers.#.mlp.shared_expert.down_proj.weight",
     .is_in = has_shared_expert},
    {.ours = "layers.#.mlp.shared_gate.weight",
     .theirs = "model.layers.#.mlp.shared_expert_gate.weight",
     .is_in = has_shared_expert},
};
inline constexpr auto kHubSparseNames =
    joined(kHubRotaryNames, kHubSparseOthers,
           hub_expert_names("model.layers.#.mlp.experts.@.gate_proj.weight",
                            "model.layers.#.mlp.experts.@.up_proj.weight",
                            "model.layers.#.mlp.experts.@.down_proj.weight"));

}  // namespace tessera
