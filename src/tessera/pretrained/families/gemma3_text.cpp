/// Gemma 3 for text as Hugging Face's folders have it.

#include "tessera/pretrained/hub/hub_rotary.h"

namespace tessera {

extern const ModelFamily kGemma3Text;

namespace {

constexpr auto kGemma3TextKeys = hub_rotary_keys({.width = 2304,
                                                  .layers = 26,
                                                  .heads = 8,
                                                  .kv_heads = 4,
                                                  .ffn_width = 9216,
                                                  .vocabulary = 262208,
                                                  .context = 131072,
                                                  .tied = true});
constexpr HubKey kGemma3TextOwnKeys[] = {
    hub_activation("hidden_activation", "gelu_pytorch_tanh"),
    kHubAttentionBias,
    {.key = "head_dim", .slot = &ModelConfig::head_width, .standard = 256},
    kHubOneSided,
    hub_window(4096),
    {.key = "layer_types", .use = HubUse::Own},
    {.key = "sliding_window_pattern", .use = HubUse::Own},
    {.key = "_sliding_window_pattern", .use = HubUse::Own},
    {.key = "rope_local_base_freq", .use = HubUse::Own},
    {.key = "attn_logit_softcapping",
     .slot = &ModelConfig::score_cap,
     .standard = 0.0,
     .null = 0.0,
     .least = 0},
    {.key = "final_logit_softcapping",
     .slot = &ModelConfig::logit_cap,
     .standard = 0.0,
     .null = 0.0,
     .least = 0},
    {.key = "query_pre_attn_scalar", .slot = &ModelConfig::query_scalar, .standard = 256},
};
constexpr std::span<const HubKey> kGemma3TextBlocks[] = {kGemma3TextKeys, kGemma3TextOwnKeys};

void read_gemma3(const HubConfig& from, ModelConfig& to) {
  to.global_every = 6;
  for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"}) {
    if (from.has(key)) to.global_every = from.whole(key, 2, 1'000'000);
  }
  read_rotary_of_kinds(from, to);
  read_layer_types(from, to);
}

void write_gemma3(const ModelConfig& from, HubJson& to) {
  write_rotary_of_kinds(from, to);
  write_layer_types(from, to);
}

constexpr HubClass kGemma3TextClasses[] = {
    {TaskHead::CausalLm, "Gemma3ForCausalLM"},
    {TaskHead::SequenceClassification, "Gemma3TextForSequenceClassification"}};

}  // namespace

extern constinit const HubFamily kHubGemma3Text = hub_rotary_family({
    .model_type = "gemma3_text",
    .classes = kGemma3TextClasses,
    .base_class = "Gemma3TextModel",
    .family = &kGemma3Text,
    .keys = kGemma3TextBlocks,
    .read = read_gemma3,
    .write = write_gemma3,
});

}  // namespace tessera
