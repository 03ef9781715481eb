/// The Vision Transformer as Hugging Face's folders have it: ViTForImageClassification.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

extern const ModelFamily kVit;

namespace {

constexpr HubName kVitNames[] = {
    {"embed.cls.weight", "vit.embeddings.cls_token"},
    {"embed.position.weight", "vit.embeddings.position_embeddings"},
    {"embed.patch", "vit.embeddings.patch_embeddings.projection"},
    {"layers.#.norm1", "vit.encoder.layer.#.layernorm_before"},
    {"layers.#.attn.qkv", "vit.encoder.layer.#.attention.attention.query", HubRows::Queries},
    {"layers.#.attn.qkv", "vit.encoder.layer.#.attention.attention.key", HubRows::Keys},
    {"layers.#.attn.qkv", "vit.encoder.layer.#.attention.attention.value", HubRows::Values},
    {"layers.#.attn.proj", "vit.encoder.layer.#.attention.output.dense"},
    {"layers.#.norm2", "vit.encoder.layer.#.layernorm_after"},
    {"layers.#.mlp.up", "vit.encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.down", "vit.encoder.layer.#.output.dense"},
    {"norm", "vit.layernorm"},
    {.ours = "classifier", .theirs = "classifier", .heads = TaskHead::ImageClassification},
};

// Of models that were trained without classes, and what covers masked patches.
constexpr std::string_view kVitUnread[] = {"pooler.dense.*", "embeddings.mask_token"};

constexpr HubKey kVitKeys[] = {
    hub_rate("hidden_dropout_prob", &ModelConfig::dropout, 0.0),
    hub_rate("attention_probs_dropout_prob", &ModelConfig::attention_dropout, 0.0),
    {.key = "image_size", .slot = &ModelConfig::image_size, .standard = 224},
    {.key = "patch_size", .slot = &ModelConfig::patch_size, .standard = 16},
    {.key = "num_channels", .slot = &ModelConfig::image_channels, .standard = 3},
    must_be("qkv_bias", true, "queries, keys and values have biases here"),
};
constexpr std::span<const HubKey> kVitBlocks[] = {kHubEncoderKeys, kVitKeys};
// Of models that were trained without classes.
constexpr std::string_view kVitHarmless = "encoder_stride pooler_output_size pooler_act";

constexpr HubClass kVitClasses[] = {{TaskHead::ImageClassification, "ViTForImageClassification"}};

}  // namespace

extern constinit const HubFamily kHubVit = {
    .model_type = "vit",
    .classes = kVitClasses,
    .base_class = "ViTModel",
    .family = &kVit,
    .prefix = "vit.",
    .names = kVitNames,
    .unread = kVitUnread,
    .keys = kVitBlocks,
    .harmless = kVitHarmless,
};

}  // namespace tessera
