/// Qwen3-MoE: Qwen3 whose feed-forward layers are experts.

#include "tessera/models/families/qwen.h"

namespace tessera {

namespace {

constexpr ReadField kQwen3MoeOwnReads[] = {{"head-width"}, {"attention-bias"}};
constexpr auto kQwen3MoeReads = joined(kQwenReads, kExpertReads, kQwen3MoeOwnReads);

}  // namespace

extern constinit const ModelFamily kQwen3Moe = [] {
  ModelFamily out = qwen_family({
      .name = "qwen3_moe",
      .doc = "Qwen3 whose feed-forward layers are experts",
      .reads = kQwen3MoeReads,
      .tasks = kExpertTasks,
      .layer = rotary_layer({.head_norm = true}),
  });
  out.publish = [](ModelConfig& config) {
    publish_qwen(config);
    config.experts = {.experts = 128, .chosen = 8, .balance = 0.001};
  };
  return out;
}();

}  // namespace tessera
