/// Qwen2 and Qwen2.5 (Yang et al. 2024): LLaMA with biases of queries, keys and values.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr auto kQwen2Reads = joined(kDecoderReads, kRopeReads, kSwiGluReads, kWindowReads);

}  // namespace

extern constinit const ModelFamily kQwen2 = {
    .name = "qwen2",
    .doc = "LLaMA with biases of queries, keys and values",
    .reads = kQwen2Reads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.rope_base = 1e6;
          config.norm_eps = 1e-6;
        },
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = rotary_layer({.qkv_bias = true}),
};

}  // namespace tessera
