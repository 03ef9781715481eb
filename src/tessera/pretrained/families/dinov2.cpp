/// DINOv2 as Hugging Face's folders have it: Dinov2ForImageClassification.

#include "tessera/models/families/dinov2.h"

#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_pictures.h"

namespace tessera {

extern const ModelFamily kDinov2;

namespace {

bool is_gated(const ModelConfig& model) { return model.activation == kDinov2SwiGlu; }
bool is_not_gated(const ModelConfig& model) { return !is_gated(model); }

constexpr HubName kDinov2LayerNames[] = {
    {"layers.#.norm1", "encoder.layer.#.norm1"},
    {"layers.#.norm1_scale.weight", "encoder.layer.#.layer_scale1.lambda1"},
    {"layers.#.norm2", "encoder.layer.#.norm2"},
    {"layers.#.norm2_scale.weight", "encoder.layer.#.layer_scale2.lambda1"},
    {.ours = "layers.#.mlp.up", .theirs = "encoder.layer.#.mlp.fc1", .is_in = is_not_gated},
    {.ours = "layers.#.mlp.down", .theirs = "encoder.layer.#.mlp.fc2", .is_in = is_not_gated},
    {"layers.#.mlp.gate", "encoder.layer.#.mlp.weights_in", HubRows::UpperHalf, HubOrder::OutIn,
     is_gated},
    {"layers.#.mlp.up", "encoder.layer.#.mlp.weights_in", HubRows::LowerHalf, HubOrder::OutIn,
     is_gated},
    {.ours = "layers.#.mlp.down", .theirs = "encoder.layer.#.mlp.weights_out", .is_in = is_gated},
};
constexpr auto kDinov2Body = joined(kHubPictureNames, kDinov2LayerNames);

constexpr HubKey kDinov2Keys[] = {
    {.key = "hidden_size", .slot = &ModelConfig::width, .standard = 768},
    {.key = "num_hidden_layers", .slot = &ModelConfig::layers, .standard = 12},
    {.key = "num_attention_heads", .slot = &ModelConfig::heads, .standard = 12},
    {.key = "mlp_ratio", .use = HubUse::Own, .shapes = true},
    {.key = "use_swiglu_ffn", .use = HubUse::Own, .shapes = true},
    {.key = "hidden_act", .use = HubUse::Must, .standard = "gelu", .must = "gelu", .words = "gelu"},
    hub_norm_eps("layer_norm_eps", 1e-6),
    hub_init_std("initializer_range", 0.02),
    hub_patch_size(14),
    {.key = "layerscale_value",
     .slot = &ModelConfig::layer_scale,
     .standard = 1.0,
     .least = 1e-30,
     .most = 1e6},
    must_be("drop_path_rate", 0.0, "parts of layers are never left out here"),
    {.key = "use_mask_token", .use = HubUse::Own},
};
constexpr std::span<const HubKey> kDinov2Blocks[] = {kDinov2Keys, kHubPictureKeys};
// Of models that give their features to others.
constexpr std::string_view kDinov2Harmless =
    "apply_layernorm reshape_hidden_states out_features out_indices stage_names";

void read_dinov2(const HubConfig& from, ModelConfig& to) {
  const auto truth = [&](std::string_view key, bool standard) {
    return from.find(key) == nullptr ? standard : from.truth(key);
  };
  constexpr std::int64_t kMostRatio = 1000;
  const bool gated = truth("use_swiglu_ffn", false);
  truth("use_mask_token", true);  // its tensor covers patches, and is not read
  to.activation = gated ? kDinov2SwiGlu : kDinov2Gelu;
  const std::int64_t ratio =
      from.find("mlp_ratio") == nullptr ? 4 : from.whole("mlp_ratio", 1, kMostRatio);
  to.ffn_width = dinov2_hidden(to.width, ratio, gated);
}

void write_dinov2(const ModelConfig& from, HubJson& to) {
  to["mlp_ratio"] = dinov2_ratio(from);
  to["use_swiglu_ffn"] = is_gated(from);
  to["use_mask_token"] = false;
}

constexpr HubClass kDinov2Classes[] = {
    {TaskHead::ImageClassification, "Dinov2ForImageClassification"}};

}  // namespace

extern constinit const HubFamily kHubDinov2 = {
    .model_type = "dinov2",
    .classes = kDinov2Classes,
    .base_class = "Dinov2Model",
    .family = &kDinov2,
    .prefix = "dinov2.",
    .body = kDinov2Body,
    .names = kHubPictureHead,
    .unread = kHubPictureUnread,
    .keys = kDinov2Blocks,
    .harmless = kDinov2Harmless,
    .read = read_dinov2,
    .write = write_dinov2,
};

}  // namespace tessera
