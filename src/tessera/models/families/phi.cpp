/// Phi-1, 1.5 and 2 (Li et al. 2023): attention and feed-forward side by side behind one norm.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kPhiOwnReads[] = {{"kv-heads"}};
constexpr auto kPhiReads = joined(kPartialReads, kPhiOwnReads);

}  // namespace

extern constinit const ModelFamily kPhi = {
    .name = "phi",
    .doc = "parallel parts behind one norm, rotary positions of a share of channels, GELU",
    .reads = kPhiReads,
    .tasks = kRotaryTasks,
    .publish =
        [](ModelConfig& config) {
          config.tied_head = false;
          config.rotary_share = 0.5;
        },
    .find_problems = find_rotary_problems,
    .layer = {.parallel = true, .one_norm = true, .rotary = true},
    .head_bias = true,
};

}  // namespace tessera
