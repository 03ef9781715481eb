/// Falcon (Almazrouei et al. 2023): parallel parts, grouped queries, rotary positions.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kFalconOwnReads[] = {{"kv-heads"}, {"ffn-width"}, {"bias"}, {"one-norm"}};
constexpr auto kFalconReads = joined(kDecoderReads, kRopeReads, kFalconOwnReads);

}  // namespace

extern constinit const ModelFamily kFalcon = {
    .name = "falcon",
    .doc = "parallel parts, rotary positions, grouped queries, exact GELU, tied head",
    .reads = kFalconReads,
    .tasks = kRotaryTasks,
    .publish = [](ModelConfig& config) { config.bias = false; },
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::GeluErf,
              .parallel = true,
              .norm_bias = true,
              .rotary = true},
};

}  // namespace tessera
