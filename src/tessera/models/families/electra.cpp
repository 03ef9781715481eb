/// ELECTRA (Clark et al. 2020, arXiv 2003.10555): BERT whose tables may be narrower than the layers.
/// Here its generator learns masked tokens, and the tasks on labels are for its discriminator.

#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kElectraModel = {
    .narrow = NarrowTables::IfWidthsDiffer,
    .text_head = classifier_block([](Value x) { return gelu(x, GeluForm::Erf); }),
};

}  // namespace

extern constinit const ModelFamily kElectra = {
    .name = "electra",
    .doc = "as bert, masked tokens alone, tables of a width of their own",
    .reads = kNarrowReads,
    .tasks = kOnePartTasks<kElectraModel>,
    .publish = [](ModelConfig& config) { config.norm_eps = 1e-12; },
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
