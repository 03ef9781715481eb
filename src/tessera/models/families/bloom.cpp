/// BLOOM (Scao et al. 2022).

#include "tessera/models/rotary_lm.h"

namespace tessera {

extern constinit const ModelFamily kBloom = {
    .name = "bloom",
    .doc = "pre-norm, scores that fall with distance (ALiBi), GELU, tied head",
    .reads = kDecoderReads,
    .tasks = kRotaryTasks,
    .slopes = true,
    .table_norm = true,
};

}  // namespace tessera
