/// GPT-NeoX and Pythia (Black et al. 2022): attention and feed-forward side by side.

#include "tessera/models/rotary_lm.h"

namespace tessera {

extern constinit const ModelFamily kGptNeox = {
    .name = "gpt_neox",
    .doc = "parallel parts, rotary positions of a share of channels, exact GELU",
    .reads = kPartialReads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          config.tied_head = false;
          config.rotary_share = 0.25;
        },
    .find_problems = find_rotary_problems,
    .layer = {.feed_forward = FeedForward::GeluErf, .parallel = true, .rotary = true},
};

}  // namespace tessera
