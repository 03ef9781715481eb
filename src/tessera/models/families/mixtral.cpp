/// Mixtral (Jiang et al. 2024): Mistral whose feed-forward layers are experts.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kMixtralOwnReads[] = {{"head-width"}, {"window"}};
constexpr auto kMixtralReads =
    joined(kDecoderReads, kRopeReads, kSwiGluReads, kExpertReads, kMixtralOwnReads);

}  // namespace

extern constinit const ModelFamily kMixtral = {
    .name = "mixtral",
    .doc = "Mistral whose feed-forward layers are experts, two of which each token reads",
    .reads = kMixtralReads,
    .tasks = kExpertTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.rope_base = 1e6;
          config.experts = {.experts = 8, .chosen = 2, .balance = 0.001};
        },
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = rotary_layer(),
    .megatron = true,
};

}  // namespace tessera
