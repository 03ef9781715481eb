/// StarCoder2 (Lozhkov et al. 2024): grouped queries and rotary positions, else as GPT-2.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kStarcoder2OwnReads[] = {{"kv-heads"}, {"ffn-width"}, {"window"}, {"bias"}};
constexpr auto kStarcoder2Reads = joined(kDecoderReads, kRopeReads, kStarcoder2OwnReads);

}  // namespace

extern constinit const ModelFamily kStarcoder2 = {
    .name = "starcoder2",
    .doc = "pre-norm, rotary positions, grouped queries, GELU",
    .reads = kStarcoder2Reads,
    .tasks = kRotaryTasks,
    .publish = [](ModelConfig& config) { config.init_std = 0.018042; },
    .find_problems = find_rotary_problems,
    .layer = {.norm_bias = true, .rotary = true},
};

}  // namespace tessera
