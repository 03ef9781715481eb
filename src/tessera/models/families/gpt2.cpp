/// GPT-2 (Radford et al. 2019): pre-norm layers, learned positions, GELU (tanh form), the head tied
/// to the embedding.

#include "tessera/models/causal_lm.h"

namespace tessera {

namespace {

constexpr auto kGpt2Tasks = causal_tasks<kTiedReads, kGptPackedReads>();

}  // namespace

extern constinit const ModelFamily kGpt2 = {
    .name = "gpt2",
    .doc = "pre-norm, learned positions, GELU, tied head",
    .reads = kGptReads,
    .tasks = kGpt2Tasks,
    .standard = true,
};

}  // namespace tessera
