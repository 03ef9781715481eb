/// Phi-3 and Phi-4 (Abdin et al. 2024): LLaMA with joined projections.

#include "tessera/models/rotary_lm.h"

namespace tessera {

namespace {

constexpr ReadField kPhi3OwnReads[] = {{"window"}, {"rotary-share"}};
constexpr auto kPhi3Reads = joined(kDecoderReads, kRopeReads, kSwiGluReads, kPhi3OwnReads);

}  // namespace

extern constinit const ModelFamily kPhi3 = {
    .name = "phi3",
    .doc = "LLaMA with a sliding window, rotary positions of a share of channels",
    .reads = kPhi3Reads,
    .tasks = kRotaryTasks,
    .publish = publish_rotary,
    .complete = complete_rotary,
    .find_problems = find_rotary_problems,
    .layer = rotary_layer(),
};

}  // namespace tessera
