/// Qwen3 (Yang et al. 2025): LLaMA with an RMS norm of each head of queries and keys.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kQwen3Reads[] = {{"layers"},
                                     {"heads"},
                                     {"kv-heads"},
                                     {"width"},
                                     {"head-width"},
                                     {"attention-bias"},
                                     {"ffn-width", "0 is 8/3 x width, up to a multiple of 4"},
                                     {"context"},
                                     {"vocab-size"},
                                     {"dropout"},
                                     {"attention-dropout"},
                                     {"norm-eps"},
                                     {"rope-base"},
                                     {"init-std"}};

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
