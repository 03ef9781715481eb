/// mT5 (Xue et al. 2020, arXiv 2010.11934): T5 1.1 in a hundred languages.

#include "tessera/models/families/t5.h"

namespace tessera {

extern constinit const ModelFamily kMt5 = t5_family({
    .name = "mt5",
    .doc = "as t5, gated GELU and a head of its own",
    .publish = publish_t5<kT5GatedGelu, false>,
});

}  // namespace tessera
