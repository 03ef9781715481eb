/// Mistral (Jiang et al. 2023): LLaMA with a window.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kMistralOwnReads[] = {{"head-width"}, {"window"}};
constexpr auto kMistralReads = joined(kDecoderReads, kRopeReads, kSwiGluReads, kMistralOwnReads);

}  // namespace

extern constinit const ModelFamily kMistral = {
    .name = "mistral",
    .doc = "LLaMA with a sliding window",
    .reads = kMistralReads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          publish_rotary(config);
          config.norm_eps = 1e-6;
        },
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = rotary_layer(),
};

}  // namespace tessera
