/// Gemma (Gemma Team 2024): LLaMA with GeGLU, norms by 1 + weight, a tied and scaled embedding.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kGemmaOwnReads[] = {
    {"kv-heads"}, {"head-width"}, {"ffn-width"}, {"attention-bias"}};
constexpr auto kGemmaReads = joined(kDecoderReads, kRopeReads, kGemmaOwnReads);

}  // namespace

extern constinit const ModelFamily kGemma = {
    .name = "gemma",
    .doc = "LLaMA with GeGLU, norms by 1 + weight, a scaled table of tokens",
    .reads = kGemmaReads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-6;
        },
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::GeGlu,
              .norm = NormKind::RmsPlusOne,
              .bias = false,
              .rotary = true},
    .scaled_table = true,
};

}  // namespace tessera
