/// CamemBERT (Martin et al. 2019, arXiv 1911.03894).

#include "tessera/models/families/roberta.h"

namespace tessera {

extern constinit const ModelFamily kCamembert =
    roberta_family("camembert", "roberta that learned French");

}  // namespace tessera
