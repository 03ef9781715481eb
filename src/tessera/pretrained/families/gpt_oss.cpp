/// gpt-oss as Hugging Face's folders have it: the matrices of all experts of a layer are one tensor.

#include "tessera/base/error.h"
#include "tessera/pretrained/hub/hub_experts.h"

namespace tessera {

extern const ModelFamily kGptOss;

namespace {

constexpr std::string_view kQuantized = "quantization_config";
constexpr HubExperts kGptOssExperts = {.key = "num_local_experts", .experts = 128, .chosen = 4};

constexpr auto kGptOssKeys = hub_rotary_keys({.width = 2880,
                                              .layers = 36,
                                              .heads = 64,
                                              .kv_heads = 8,
                                              .ffn_width = 2880,
                                              .vocabulary = 201088,
                                              .context = 131072,
                                              .norm_eps = 1e-5});
constexpr HubKey kGptOssOwnKeys[] = {
    kHubSilu,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = std::int64_t{64}},
    {.key = "sliding_window", .slot = &ModelConfig::window, .standard = std::int64_t{128}},
    {.key = "layer_types", .use = HubUse::Own},
    must_be("attention_bias", true, "attention has biases here"),
    must_be("swiglu_alpha", 1.702, "experts have this slope here"),
    must_be("swiglu_limit", 7.0, "experts are capped there"),
    hub_expert_key(kGptOssExperts.key, true),
    {.key = kQuantized, .use = HubUse::Own, .write = HubWrite::Never},
};
constexpr std::span<const HubKey> kGptOssBlocks[] = {kGptOssKeys, kGptOssOwnKeys, kHubExpertKeys};

constexpr HubName kGptOssOwnNames[] = {
    {"layers.#.attn.sinks.weight", "model.layers.#.self_attn.sinks"},
    {"layers.#.mlp.router", "model.layers.#.mlp.router"},
    {"layers.#.mlp.experts.gate.weight", "model.layers.#.mlp.experts.gate_up_proj",
     HubRows::EvenOfExperts},
    {"layers.#.mlp.experts.up.weight", "model.layers.#.mlp.experts.gate_up_proj",
     HubRows::OddOfExperts},
    {"layers.#.mlp.experts.gate.bias", "model.layers.#.mlp.experts.gate_up_proj_bias",
     HubRows::EvenOfExperts},
    {"layers.#.mlp.experts.up.bias", "model.layers.#.mlp.experts.gate_up_proj_bias",
     HubRows::OddOfExperts},
    {"layers.#.mlp.experts.down.weight", "model.layers.#.mlp.experts.down_proj", HubRows::Experts},
    {"layers.#.mlp.experts.down.bias", "model.layers.#.mlp.experts.down_proj_bias",
     HubRows::Experts},
};
constexpr auto kGptOssNames = joined(kHubRotaryNames, kGptOssOwnNames);

constexpr HubClass kGptOssClasses[] = {
    {TaskHead::CausalLm, "GptOssForCausalLM"},
    {TaskHead::SequenceClassification, "GptOssForSequenceClassification"},
    {TaskHead::TokenClassification, "GptOssForTokenClassification"}};

void read_gpt_oss(const HubConfig& from, ModelConfig& to) {
  if (!from.has("rope_parameters") && !from.has("rope_scaling"))
    fail(Fault::Data, from.path(), ": rope_parameters is missing, which says how positions are ",
         "scaled; add what the model was trained with");
  if (from.has(kQuantized)) {
    const HubJson& how = from.json()[kQuantized];
    if (!how.is_object() || !how.contains("quant_method") || how["quant_method"] != "mxfp4")
      from.refuse(kQuantized, "weights are read from mxfp4, f32, bf16 and f16");
  }
  to.global_every = 2;
  read_rotary_in_layers(from, to);
  read_experts(from, kGptOssExperts, to);
}

void write_gpt_oss(const ModelConfig& from, HubJson& to) {
  write_rotary_in_layers(from, to);
  to.erase(std::string(kQuantized));  // what is written is whole
  write_experts(from, kGptOssExperts, to);
}

}  // namespace

extern constinit const HubFamily kHubGptOss = hub_rotary_family({
    .model_type = "gpt_oss",
    .classes = kGptOssClasses,
    .base_class = "GptOssModel",
    .family = &kGptOss,
    .names = kGptOssNames,
    .keys = kGptOssBlocks,
    .read = read_gpt_oss,
    .write = write_gpt_oss,
});

}  // namespace tessera
