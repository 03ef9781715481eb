#include "tessera/models/families/roberta.h"

namespace tessera {

extern constinit const ModelFamily kRoberta =
    roberta_family("roberta", "as bert, masked tokens alone, samples of one part");

}  // namespace tessera
