/// Marian's translators as transformers has them (Junczys-Dowmunt et al. 2018, arXiv 1804.00344):
/// BART with sines as positions, no norms behind embeddings, and a bias of logits.

#include "tessera/models/families/bart.h"

namespace tessera {

namespace {

constexpr ReadField kMarianTables[] = {{"shared-embedding"}};
constexpr auto kMarianReads = joined(kBartReads, kMarianTables);
constexpr TensorCut kTokenCuts[] = {{"embed*.token.weight", 0, 2, /*table=*/true}};
constexpr auto kMarianCuts = joined(kTokenCuts, kLogitBiasCuts);

}  // namespace

extern constinit const ModelFamily kMarian = bart_family<kMarianForm>({
    .name = "marian",
    .doc = "as bart, sines as positions, SiLU",
    .reads = kMarianReads,
    .publish =
        [](ModelConfig& config) {
          config.activation = "silu";
          config.shared_embedding = config.scale_embedding = true;
        },
    .cuts = kMarianCuts,
    .tokens_of = started_by_padding,
});

}  // namespace tessera
