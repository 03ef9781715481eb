/// GPT with RMS norm, rotary positions and SwiGLU in Megatron-LM's own names and layouts: LLaMA.

#include "tessera/pretrained/families/megatron_lm.h"

namespace tessera {

extern const ModelFamily kLlama;

namespace {

constexpr HubName kMegatronLmGated[] = {
    {"layers.#.mlp.gate.weight", "encoder.layers.#.mlp.dense_h_to_4h.weight", HubRows::UpperHalf},
    {"layers.#.mlp.up.weight", "encoder.layers.#.mlp.dense_h_to_4h.weight", HubRows::LowerHalf}};
constexpr auto kMegatronLmLlamaBody = joined(kMegatronLmLayers, kMegatronLmGated);

constexpr HubKey kMegatronLmLlamaKeys[] = {
    hub_needed("max_position_embeddings", &ModelConfig::context),
    hub_needed("ffn_hidden_size", &ModelConfig::ffn_width),
    {.key = "normalization",
     .use = HubUse::Must,
     .standard = "LayerNorm",
     .must = "RMSNorm",
     .words = "RMSNorm"},
    {.key = "position_embedding_type",
     .use = HubUse::Must,
     .standard = "learned_absolute",
     .must = "rope",
     .words = "rope"},
    {.key = "swiglu",
     .use = HubUse::Must,
     .standard = false,
     .must = true,
     .why = "with RMS norm the activation is SwiGLU here"},
    {.key = "add_bias_linear",
     .use = HubUse::Must,
     .standard = true,
     .must = false,
     .why = "with RMS norm linear layers have no biases here"},
    hub_off("add_qkv_bias", "queries, keys and values have no biases here"),
    {.key = "rotary_base",
     .slot = &ModelConfig::rope_base,
     .standard = 10'000.0,
     .least = 1,
     .most = 1e12},
    {.key = "rotary_percent",
     .use = HubUse::Must,
     .standard = 1.0,
     .must = 1.0,
     .why = "all channels of a head rotate here"},
    hub_off("rotary_interleaved", "channels rotate with those of the other half here"),
    hub_off("use_rope_scaling", "rates of positions are not scaled here"),
};
constexpr std::span<const HubKey> kMegatronLmLlamaBlocks[] = {kMegatronLmKeys, kMegatronLmLlamaKeys,
                                                              kMegatronLmGptKeys};

void read_megatron_lm_llama(const HubConfig& from, ModelConfig& to) {
  read_megatron_lm_gpt(from, to);
  const std::int64_t width = from.has("kv_channels") ? from.whole("kv_channels", 1, 1'000'000) : 0;
  const bool usual = to.heads > 0 && width * to.heads == to.width;
  to.head_width = usual ? 0 : width;
}

}  // namespace

extern constinit const HubFamily kHubMegatronLmLlama = megatron_lm_folders({
    .model_type = "megatron-lm-llama",
    .classes = kMegatronLmGptClasses,
    .base_class = "GPTModel",
    .family = &kLlama,
    .body = kMegatronLmLlamaBody,
    .names = kMegatronLmGptNames,
    .ties = kMegatronLmGptTies,
    .keys = kMegatronLmLlamaBlocks,
    .read = read_megatron_lm_llama,
    .grouped_queries = true,
    .ends_by_padding = true,
});

}  // namespace tessera
