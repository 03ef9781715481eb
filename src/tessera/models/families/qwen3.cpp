/// Qwen3 (Yang et al. 2025): LLaMA with an RMS norm of each head of queries and keys.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kQwen3OwnReads[] = {{"head-width"}, {"attention-bias"}};
constexpr auto kQwen3Reads =
    joined(kDecoderReads, kRopeReads, kSwiGluReads, kWindowReads, kQwen3OwnReads);

}  // namespace

extern constinit const ModelFamily kQwen3 = {
    .name = "qwen3",
    .doc = "LLaMA with norms of queries and keys",
    .reads = kQwen3Reads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.rope_base = 1e6;
          config.norm_eps = 1e-6;
        },
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = rotary_layer({.head_norm = true}),
};

}  // namespace tessera
