/// The Vision Transformer as Hugging Face's folders have it: ViTForImageClassification.

#include "tessera/pretrained/hub/hub_encoder.h"
#include "tessera/pretrained/hub/hub_family.h"

namespace tessera {

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
    {"classifier", "classifier"},
};

// Of models that were trained without classes, and what covers masked patches.
constexpr std::string_view kVitUnread[] = {"pooler.dense.*", "embeddings.mask_token"};

void read_vit(const HubConfig& from, ModelConfig& to) {
  read_encoder(from, 0, to);
  to.image_size = from.count("image_size", 224);
  to.patch_size = from.count("patch_size", 16);
  to.image_channels = from.count("num_channels", 3);
  from.require_truth("qkv_bias", true, "queries, keys and values have biases here");
}

void write_vit(const ModelConfig& from, HubJson& to) {
  write_encoder(from, to);
  to["image_size"] = from.image_size;
  to["patch_size"] = from.patch_size;
  to["num_channels"] = from.image_channels;
  to["qkv_bias"] = true;
}

constexpr HubClass kVitClasses[] = {{kImageClassification, "ViTForImageClassification"}};

}  // namespace

constinit const HubFamily kHubVit = {
    .model_type = "vit",
    .classes = kVitClasses,
    .family = &kVit,
    .prefix = "vit.",
    .names = kVitNames,
    .unread = kVitUnread,
    .read = read_vit,
    .write = write_vit,
};

}  // namespace tessera
