/// LLaMA (Touvron et al. 2023).

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kLlamaReads[] = {
    {"layers"},     {"heads"},
    {"kv-heads"},   {"width"},
    {"head-width"}, {"attention-bias"},
    {"ffn-bias"},   {"ffn-width", "0 is 8/3 x width, up to a multiple of 4"},
    {"context"},    {"vocab-size"},
    {"dropout"},    {"attention-dropout"},
    {"norm-eps"},   {"rope-base"},
    {"init-std"}};

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
