/// XLM-RoBERTa (Conneau et al. 2019, arXiv 1911.02116).

#include "tessera/models/families/roberta.h"

namespace tessera {

extern constinit const ModelFamily kXlmRoberta =
    roberta_family("xlm-roberta", "roberta that learned a hundred languages");

}  // namespace tessera
