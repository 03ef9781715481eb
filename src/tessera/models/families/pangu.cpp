/// PanGu-alpha (Zeng et al. 2021, arXiv 2104.12369): GPT-2 whose last layer takes its queries from
/// a learned embedding of positions, in place of what the layers below made. `layers` counts it.

#include "tessera/models/causal_lm.h"

namespace tessera {

namespace {

constexpr FamilyTask kPanguTasks[] = {
    {kCausalLm, causal_lm, kJoinedReads<kTiedReads, kGptPackedReads>}};

}  // namespace

extern constinit const ModelFamily kPangu = {
    .name = "pangu",
    .doc = "as gpt2, the last layer with a learned query for each position",
    .reads = kGptReads,
    .tasks = kPanguTasks,
    .query_layer = true,
};

}  // namespace tessera
