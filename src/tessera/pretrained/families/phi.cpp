/// Phi as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kPhi;

namespace {

constexpr HubName kPhiOwn[] = {
    {"layers.#.attn.proj", "model.layers.#.self_attn.dense"},
    {"layers.#.norm1", "model.layers.#.input_layernorm"},
    {"layers.#.mlp.up", "model.layers.#.mlp.fc1"},
    {"layers.#.mlp.down", "model.layers.#.mlp.fc2"},
    {"norm", "model.final_layernorm"},
    {.ours = "head.bias", .theirs = "lm_head.bias", .heads = TaskHead::CausalLm},
};
constexpr auto kPhiNames = joined(kHubDecoderNames, kPhiOwn);
constexpr std::string_view kPhiUnread[] = {"layers.*.self_attn.rotary_emb.inv_freq"};

constexpr auto kPhiKeys = hub_decoder_keys({.width = 2048,
                                            .layers = 24,
                                            .heads = 32,
                                            .kv_heads = 0,
                                            .ffn_width = 8192,
                                            .vocabulary = 51200,
                                            .context = 2048});
constexpr HubKey kPhiOwnKeys[] = {
    hub_kv_heads(0),
    hub_activation("hidden_act", "gelu_new"),
    hub_norm_eps("layer_norm_eps", 1e-5),
    must_be("qk_layernorm", false, "queries and keys are not normed here"),
    hub_rate("resid_pdrop", &ModelConfig::dropout, 0.0),
    {.key = "embd_pdrop", .use = HubUse::Same, .slot = &ModelConfig::dropout, .standard = 0.0},
};
constexpr std::span<const HubKey> kPhiBlocks[] = {kPhiKeys, kPhiOwnKeys, kHubTokenDropout};

constexpr HubClass kPhiClasses[] = {
    {TaskHead::CausalLm, "PhiForCausalLM"},
    {TaskHead::SequenceClassification, "PhiForSequenceClassification"},
    {TaskHead::TokenClassification, "PhiForTokenClassification"}};

}  // namespace

extern constinit const HubFamily kHubPhi = {
    .model_type = "phi",
    .classes = kPhiClasses,
    .base_class = "PhiModel",
    .family = &kPhi,
    .prefix = "model.",
    .names = kPhiNames,
    .ties = kHubRotaryTies,
    .unread = kPhiUnread,
    .keys = kPhiBlocks,
    .read = [](const HubConfig& from, ModelConfig& to) { read_rotary(from, to); },
    .write = write_rotary,
    .grouped_queries = true,
    .ends_by_padding = true,
};

}  // namespace tessera
