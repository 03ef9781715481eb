/// Gemma 2 (Gemma Team 2024): Gemma with norms behind parts, caps, windows in every other layer.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kGemma2OwnReads[] = {{"kv-heads"},       {"head-width"},   {"ffn-width"},
                                         {"attention-bias"}, {"query-scalar"}, {"score-cap"}};
constexpr auto kGemma2Reads = joined(kDecoderReads, kRopeReads, kWindowReads, kGemma2OwnReads);

}  // namespace

extern constinit const ModelFamily kGemma2 = {
    .name = "gemma2",
    .doc = "Gemma with norms behind each part, caps of scores and logits, windows",
    .reads = kGemma2Reads,
    .tasks = kCappedTasks,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-6;
          config.score_cap = 50;
          config.logit_cap = 30;
          config.global_every = 2;
        },
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::GeGlu,
              .norm = NormKind::RmsPlusOne,
              .norm_out = true,
              .bias = false,
              .rotary = true},
    .scaled_table = true,
};

}  // namespace tessera
