/// PanGu-alpha (Zeng et al. 2021, arXiv 2104.12369): GPT-2 whose last layer asks by a learned row for
/// the position of each token, in place of what the layers below made of it. `layers` counts it.

#include "tessera/models/causal_lm.h"

namespace tessera {

namespace {

constexpr ReadField kPanguReads[] = {{"layers"},
                                     {"heads"},
                                     {"kv-heads"},
                                     {"width"},
                                     {"ffn-width"},
                                     {"context"},
                                     {"positions"},
                                     {"vocab-size"},
                                     {"dropout"},
                                     {"attention-dropout"},
                                     {"bias"},
                                     {"norm-eps"},
                                     {"init-std"},
                                     {"tied-head"},
                                     {"reset-position-ids"},
                                     {"reset-attention-mask"}};

constexpr FamilyTask kPanguTasks[] = {{kCausalLm, causal_lm}};

}  // namespace

extern constinit const ModelFamily kPangu = {
    .name = "pangu",
    .doc = "as gpt2, the last layer with a learned query for each position",
    .reads = kPanguReads,
    .tasks = kPanguTasks,
    .query_layer = true,
};

}  // namespace tessera
