/// Qwen2-MoE: Qwen2 whose feed-forward layers are experts.

#include "tessera/base/size.h"
#include "tessera/models/families/qwen.h"

namespace tessera {

namespace {

constexpr ReadField kQwen2MoeOwnReads[] = {
    {"moe-shared-expert-intermediate-size", "0 is moe-router-topk x an expert's"}};
constexpr auto kQwen2MoeReads = joined(kQwenReads, kRouterReads, kQwen2MoeOwnReads);

}  // namespace

extern constinit const ModelFamily kQwen2Moe = [] {
  ModelFamily out = qwen_family({
      .name = "qwen2_moe",
      .doc = "Qwen2 whose feed-forward layers are experts, beside one that every token reads",
      .reads = kQwen2MoeReads,
      .tasks = kExpertTasks,
      .layer = rotary_layer({.qkv_bias = true}),
  });
  out.publish = [](ModelConfig& config) {
    publish_qwen(config);
    config.experts = {
        .experts = 60, .chosen = 4, .pre_softmax = true, .shared_gate = true, .balance = 0.001};
  };
  // As published: as wide as the experts of a token together.
  out.complete = [](ModelConfig& config) {
    complete_rotary(config);
    if (config.experts.experts > 0 && config.experts.shared_width == 0 &&
        config.hidden_of_experts() > 0 && config.experts.chosen > 0 &&
        size_product_fits(config.experts.chosen, config.hidden_of_experts()))
      config.experts.shared_width = config.experts.chosen * config.hidden_of_experts();
  };
  return out;
}();

}  // namespace tessera
