/// OPT (Zhang et al. 2022).

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kOptOwnReads[] = {{"ffn-width"}, {"positions"}, {"bias"}};
constexpr auto kOptReads = joined(kDecoderReads, kOptOwnReads);
constexpr auto kOptTasks = causal_tasks<kTiedReads, kGptPackedReads>();

}  // namespace

extern constinit const ModelFamily kOpt = {
    .name = "opt",
    .doc = "pre-norm, learned positions, ReLU, tied head",
    .reads = kOptReads,
    .tasks = kOptTasks,
    .layer = {.feed_forward = FeedForward::Relu, .norm_bias = true},
    .unread_positions = 2,
};

}  // namespace tessera
