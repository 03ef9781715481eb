/// Gemma 2 as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kGemma2;

namespace {

constexpr auto kGemma2Keys = hub_rotary_keys({.width = 2304,
                                              .layers = 26,
                                              .heads = 8,
                                              .kv_heads = 4,
                                              .ffn_width = 9216,
                                              .vocabulary = 256000,
                                              .context = 8192,
                                              .tied = true});
constexpr HubKey kGemma2OwnKeys[] = {
    hub_activation("hidden_activation", "gelu_pytorch_tanh"),
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 256},
    kHubOneSided,
    hub_window(4096),
    {.key = "layer_types", .use = HubUse::Own},
    {.key = "attn_logit_softcapping",
     .slot = &ModelConfig::score_cap,
     .standard = 50.0,
     .null = 0.0,
     .least = 0},
    {.key = "final_logit_softcapping",
     .slot = &ModelConfig::logit_cap,
     .standard = 30.0,
     .null = 0.0,
     .least = 0},
    {.key = "query_pre_attn_scalar", .slot = &ModelConfig::query_scalar, .standard = 256},
};
constexpr std::span<const HubKey> kGemma2Blocks[] = {kGemma2Keys, kGemma2OwnKeys};

void read_gemma2(const HubConfig& from, ModelConfig& to) {
  to.global_every = 2;
  read_rotary_in_layers(from, to);
}

constexpr HubClass kGemma2Classes[] = {
    {TaskHead::CausalLm, "Gemma2ForCausalLM"},
    {TaskHead::SequenceClassification, "Gemma2ForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubGemma2 = hub_rotary_family({
    .model_type = "gemma2",
    .classes = kGemma2Classes,
    .base_class = "Gemma2Model",
    .family = &kGemma2,
    .keys = kGemma2Blocks,
    .read = read_gemma2,
    .write = write_rotary_in_layers,
});

}  // namespace tessera
