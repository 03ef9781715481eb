/// LLaMA (Touvron et al. 2023).

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kLlamaOwnReads[] = {{"head-width"}, {"attention-bias"}, {"ffn-bias"}};
constexpr auto kLlamaReads = joined(kDecoderReads, kRopeReads, kSwiGluReads, kLlamaOwnReads);

}  // namespace

extern constinit const ModelFamily kLlama = {
    .name = "llama",
    .doc = "RMS norm, rotary positions, SwiGLU, grouped queries",
    .reads = kLlamaReads,
    .tasks = kRotaryTasks,
    .publish = publish_rotary,
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = rotary_layer(),
    .megatron = true,
};

}  // namespace tessera
