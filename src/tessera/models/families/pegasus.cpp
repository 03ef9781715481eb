/// PEGASUS (Zhang et al. 2019, arXiv 1912.08777): BART with norms before each part, sines as
/// positions and ReLU.

#include "tessera/models/families/bart.h"

namespace tessera {

extern constinit const ModelFamily kPegasus = bart_family<kPegasusForm>({
    .name = "pegasus",
    .doc = "as bart, norms before each part, sines as positions, ReLU",
    .publish =
        [](ModelConfig& config) {
          config.activation = "relu";
          config.scale_embedding = true;
        },
    .cuts = kLogitBiasCuts,
    .tokens_of = started_by_padding,
});

}  // namespace tessera
