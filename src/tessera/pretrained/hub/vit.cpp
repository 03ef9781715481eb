/// The Vision Transformer as Hugging Face's folders have it: ViTForImageClassification.

#include "tessera/base/text.h"
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

constexpr std::int64_t kUsualClasses = 2;  // where a folder names none

void read_vit(const HubConfig& from, ModelConfig& to) {
  read_encoder(from, 0, to);
  to.image_size = from.count("image_size", 224);
  to.patch_size = from.count("patch_size", 16);
  to.image_channels = from.count("num_channels", 3);
  to.classes = from.count("num_labels", kUsualClasses);
  if (from.has("id2label")) {
    const HubJson& names = from.json()["id2label"];
    if (!names.is_object() || names.empty())
      fail(Fault::Data, from.path(), ": id2label is ", names.dump(),
           "; it must name each class, as {\"0\": \"cat\"}");
    to.classes = static_cast<std::int64_t>(names.size());
  }
  from.require_truth("qkv_bias", true, "queries, keys and values have biases here");
}

void write_vit(const ModelConfig& from, HubJson& to) {
  write_encoder(from, to);
  to["image_size"] = from.image_size;
  to["patch_size"] = from.patch_size;
  to["num_channels"] = from.image_channels;
  to["qkv_bias"] = true;
  // Names of classes stay where there are as many.
  if (to.contains("id2label") && std::ssize(to["id2label"]) == from.classes) return;
  HubJson names = HubJson::object(), numbers = HubJson::object();
  for (std::int64_t i = 0; i < from.classes; ++i) {
    const std::string name = text("LABEL_", i);
    names[text(i)] = name;
    numbers[name] = i;
  }
  to["id2label"] = names;
  to["label2id"] = numbers;
}

}  // namespace

constinit const HubFamily kHubVit = {
    .model_type = "vit",
    .architecture = "ViTForImageClassification",
    .family = &kVit,
    .prefix = "vit.",
    .names = kVitNames,
    .unread = kVitUnread,
    .read = read_vit,
    .write = write_vit,
};

}  // namespace tessera
