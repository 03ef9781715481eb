#pragma once
/// Rows of names and keys that models of pictures have alike.

#include "tessera/pretrained/hub/hub_encoder.h"

namespace tessera {

/// Embedding, attention and the last norm.
inline constexpr HubName kHubPictureNames[] = {
    {"embed.cls.weight", "embeddings.cls_token"},
    {"embed.position.weight", "embeddings.position_embeddings"},
    {"embed.patch", "embeddings.patch_embeddings.projection"},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.attention.query", HubRows::Queries},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.attention.key", HubRows::Keys},
    {"layers.#.attn.qkv", "encoder.layer.#.attention.attention.value", HubRows::Values},
    {"layers.#.attn.proj", "encoder.layer.#.attention.output.dense"},
    {"norm", "layernorm"},
};
/// HubFamily::body of ViT and its heirs.
inline constexpr HubName kHubVitLayerNames[] = {
    {"layers.#.norm1", "encoder.layer.#.layernorm_before"},
    {"layers.#.norm2", "encoder.layer.#.layernorm_after"},
    {"layers.#.mlp.up", "encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "encoder.layer.#.output.dense"},
};
inline constexpr auto kHubVitBody = joined(kHubPictureNames, kHubVitLayerNames);

inline constexpr HubName kHubPictureHead[] = {
    {.ours = "classifier", .theirs = "classifier", .heads = TaskHead::ImageClassification}};

constexpr HubKey hub_patch_size(std::int64_t standard) {
  return {.key = "patch_size", .slot = &ModelConfig::patch_size, .standard = standard};
}
inline constexpr HubKey kHubPictureKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.0),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.0),
    {.key = "image_size", .slot = &ModelConfig::image_size, .standard = 224},
    {.key = "num_channels", .slot = &ModelConfig::image_channels, .standard = 3},
    must_be("qkv_bias", true, "queries, keys and values have biases here"),
};
inline constexpr HubKey kHubPatchSize16[] = {hub_patch_size(16)};
inline constexpr std::span<const HubKey> kHubVitKeys[] = {kHubEncoderKeys, kHubPictureKeys,
                                                          kHubPatchSize16};

// Of models that were trained without classes, and what covers masked patches.
inline constexpr std::string_view kHubPictureUnread[] = {"pooler.dense.*", "embeddings.mask_token"};
inline constexpr std::string_view kHubPictureHarmless =
    "encoder_stride pooler_output_size pooler_act";

}  // namespace tessera
