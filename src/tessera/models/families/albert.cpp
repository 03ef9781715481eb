/// ALBERT (Lan et al. 2019, arXiv 1909.11942): BERT whose layers all have the same weights, and
/// whose tables are narrower than the layers. It learns masked runs of words, and whether the two
/// parts of a sample are in the order of the text.

#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kAlbertModel = {.parts = SampleParts::Swapped,
                                      .second = "sop",
                                      .longest_run = 3,
                                      .feed_forward = FeedForward::GeluTanh,
                                      .narrow = NarrowTables::Always,
                                      .shared_layers = true};

}  // namespace

extern constinit const ModelFamily kAlbert = {
    .name = "albert",
    .doc = "as bert, one set of weights for all layers, narrow tables",
    .reads = kNarrowReads,
    .tasks = kMaskedTasks<kAlbertModel>,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-12;
          config.embedding_width = 128;
        },
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
