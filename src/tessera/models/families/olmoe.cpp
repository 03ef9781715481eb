/// OLMoE (Muennighoff et al. 2024): LLaMA whose feed-forward layers are experts and whose queries and
/// keys are normed.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr auto kOlmoeReads = joined(kDecoderReads, kRopeReads, kSwiGluReads, kExpertReads);

}  // namespace

extern constinit const ModelFamily kOlmoe = {
    .name = "olmoe",
    .doc = "LLaMA whose feed-forward layers are experts, with norms of queries and keys",
    .reads = kOlmoeReads,
    .tasks = kExpertTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.experts = {.experts = 64, .chosen = 8, .pre_softmax = true, .balance = 0.01};
        },
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::SwiGlu,
              .norm = NormKind::Rms,
              .bias = false,
              .norm_together = true,
              .rotary = true},
};

}  // namespace tessera
