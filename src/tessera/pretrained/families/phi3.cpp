/// Phi-3 as Hugging Face's folders have it: queries, keys and values in one tensor, gate above up.

#include "tessera/models/rope_scaling.h"
#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kPhi3;

namespace {

constexpr HubName kPhi3Names[] = {
    {"embed.token.weight", "model.embed_tokens.weight"},
    {"layers.#.norm1.weight", "model.layers.#.input_layernorm.weight"},
    {"layers.#.attn.qkv.weight", "model.layers.#.self_attn.qkv_proj.weight", HubRows::Fused},
    {"layers.#.attn.proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {"layers.#.norm2.weight", "model.layers.#.post_attention_layernorm.weight"},
    {"layers.#.mlp.gate.weight", "model.layers.#.mlp.gate_up_proj.weight", HubRows::UpperHalf},
    {"layers.#.mlp.up.weight", "model.layers.#.mlp.gate_up_proj.weight", HubRows::LowerHalf},
    {"layers.#.mlp.down.weight", "model.layers.#.mlp.down_proj.weight"},
    {"norm.weight", "model.norm.weight"},
    {.ours = "head.weight", .theirs = "lm_head.weight", .heads = TaskHead::CausalLm},
    kHubScoreNames[0],
    kHubScoreNames[1],
};

constexpr auto kPhi3Keys = hub_rotary_keys({.width = 3072,
                                            .layers = 32,
                                            .heads = 32,
                                            .kv_heads = 0,
                                            .ffn_width = 8192,
                                            .vocabulary = 32064,
                                            .context = 4096,
                                            .norm_eps = 1e-5});
constexpr HubKey kPhi3OwnKeys[] = {
    kHubSilu,
    hub_window(0),
    hub_rate("resid_pdrop", &ModelConfig::dropout, 0.0),
    {.key = "embd_pdrop",
     .use = HubUse::Same,
     .slot = &ModelConfig::dropout,
     .standard = 0.0,
     .write = HubWrite::Never},
};
constexpr std::span<const HubKey> kPhi3Blocks[] = {kPhi3Keys, kPhi3OwnKeys};

constexpr const char* kPhi3Length = "original_max_position_embeddings";

/// Where it is missing it is 4096 in transformers, whatever rope_parameters says.
void read_phi3(const HubConfig& from, ModelConfig& to) {
  if (from.has(kPhi3Length)) return read_rotary(from, to);
  HubJson json = from.json();
  json[kPhi3Length] = 4096;
  read_rotary(HubConfig(json.dump(), from.path()), to);
}

void write_phi3(const ModelConfig& from, HubJson& to) {
  write_rotary(from, to);
  const RotaryScaling scaling = rotary_scaling_of(from.rope_scaling);
  if (scaling.original_length > 0) to[kPhi3Length] = scaling.original_length;
}

constexpr HubClass kPhi3Classes[] = {
    {TaskHead::CausalLm, "Phi3ForCausalLM"},
    {TaskHead::SequenceClassification, "Phi3ForSequenceClassification"},
    {TaskHead::TokenClassification, "Phi3ForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubPhi3 = hub_rotary_family({
    .model_type = "phi3",
    .classes = kPhi3Classes,
    .base_class = "Phi3Model",
    .family = &kPhi3,
    .names = kPhi3Names,
    .keys = kPhi3Blocks,
    .read = read_phi3,
    .write = write_phi3,
});

}  // namespace tessera
