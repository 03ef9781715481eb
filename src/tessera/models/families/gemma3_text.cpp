/// Gemma 3 for text (Gemma Team 2025): Gemma 2 with norms of queries and keys, and two bases of positions.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kGemma3TextOwnReads[] = {{"kv-heads"},     {"head-width"},
                                             {"ffn-width"},    {"attention-bias"},
                                             {"query-scalar"}, {"local-rope-base"}};
constexpr auto kGemma3TextReads =
    joined(kDecoderReads, kRopeReads, kWindowReads, kGemma3TextOwnReads);

}  // namespace

extern constinit const ModelFamily kGemma3Text = {
    .name = "gemma3_text",
    .doc = "Gemma 2 with norms of queries and keys, two bases of rotary positions",
    .reads = kGemma3TextReads,
    .tasks = kCappedTasks,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-6;
          config.rope_base = 1e6;
          config.local_rope_base = 10'000;
          config.global_every = 6;
        },
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::GeGlu,
              .norm = NormKind::RmsPlusOne,
              .norm_out = true,
              .bias = false,
              .head_norm = true,
              .rotary = true},
    .scaled_table = true,
};

}  // namespace tessera
