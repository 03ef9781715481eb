/// DistilBERT (Sanh et al. 2019, arXiv 1910.01108): BERT without types of tokens, of half as many
/// layers, which learned from a whole one.

#include "tessera/models/masked_lm.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

namespace {

constexpr MaskedModel kDistilbertModel = {
    .types = 0,
    .text_head = {.dense = "pre_classifier", .activation = [](Value x) { return relu(x); }},
    .drops_before_answers = true,
};

// Those of bert but for the small number in norms: transformers has a place for it nowhere.
constexpr ReadField kDistilbertReads[] = {
    {"layers"},  {"heads"},     {"kv-heads"},   {"width"},   {"ffn-width"},
    {"context"}, {"positions"}, {"vocab-size"}, {"dropout"}, {"attention-dropout"},
    {"init-std"}};

}  // namespace

extern constinit const ModelFamily kDistilbert = {
    .name = "distilbert",
    .doc = "as bert, masked tokens alone, tokens without types",
    .reads = kDistilbertReads,
    .tasks = kOnePartTasks<kDistilbertModel>,
    .publish = [](ModelConfig& config) { config.layers = 6; },
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
    .layer = {.norm_eps = 1e-12},
};

}  // namespace tessera
