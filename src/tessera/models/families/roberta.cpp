/// RoBERTa (Liu et al. 2019, arXiv 1907.11692): BERT that learns masked tokens alone. A sample is
/// one part of the text, as long as there is room; which tokens are masked is drawn anew each time.

#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

/// Positions count from 2 in the files that its authors published: rows 0 and 1 of the table are
/// there and nothing reads them.
constexpr MaskedModel kRobertaModel = {.parts = SampleParts::One, .unread_positions = 2};

}  // namespace

extern constinit const ModelFamily kRoberta = {
    .name = "roberta",
    .doc = "as bert, masked tokens alone, samples of one part",
    .reads = kMaskedReads,
    .tasks = kOnePartTasks<kRobertaModel>,
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
