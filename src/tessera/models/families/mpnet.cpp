/// MPNet (Song et al. 2020, arXiv 2004.09297): BERT without types of tokens, whose layers add a
/// number for each head and distance to scores. Here it learns masked tokens; that of the paper
/// also permutes those that it predicts.

#include "tessera/models/layer.h"
#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kMpnetModel = {
    .types = 0,
    .doubled_separator = true,
    .unread_positions = 2,  // as roberta's
    .relative = true,
    .text_head = classifier_block([](Value x) { return tanh(x); }),
    .choice_head = FirstRowHead{.drops_as_layers = true},
};

constexpr TensorCut kMpnetCuts[] = {kMaskedCuts[0], {"embed.relative.weight", 1, 2}};

}  // namespace

extern constinit const ModelFamily kMpnet = {
    .name = "mpnet",
    .doc = "as roberta, with relative positions beside learned ones",
    .reads = kMaskedReads,
    .tasks = kOnePartTasks<kMpnetModel>,
    .find_problems = find_held_score_problems,
    .cuts = kMpnetCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
