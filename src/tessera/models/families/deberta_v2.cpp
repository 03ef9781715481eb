/// DeBERTa of versions 2 and 3 (He et al. 2021, arXiv 2006.03654 and 2111.09543): BERT without
/// types of tokens and without a table of positions, whose scores also are those of tokens and
/// distances. Here it learns masked tokens; that of version 3 learned tokens that were replaced.

#include "tessera/base/joined.h"
#include "tessera/models/layer.h"
#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kDebertaV2Model = {
    .types = 0,
    .positions = false,
    .distances = true,
    .blind_padding = true,
    .text_head = {.activation = [](Value x) { return gelu(x, GeluForm::Erf); }},
};

constexpr ReadField kDebertaV2Reads[] = {{"layers"},
                                         {"heads"},
                                         {"width"},
                                         {"ffn-width"},
                                         {"norm-eps"},
                                         {"context"},
                                         {"vocab-size"},
                                         {"dropout"},
                                         {"attention-dropout"},
                                         {"init-std"},
                                         {"distance-kinds", "of each side"},
                                         {"far-distance"}};

void find_deberta_v2_problems(const ModelConfig& c, FieldProblems& problems) {
  find_held_score_problems(c, problems);
  if (c.distance_kinds < 4 || c.distance_kinds > kMaxDistanceKinds || c.distance_kinds % 2 != 0 ||
      c.far_distance > kMaxContext || c.far_distance - 1 <= c.distance_kinds / 2)
    problems.add({"distance-kinds", "far-distance"},
                 text("distance-kinds is ", c.distance_kinds, " and far-distance ", c.far_distance,
                      "; give an even number of kinds from 4 to ", kMaxDistanceKinds,
                      ", and a distance from half of them and 2 to ", kMaxContext));
}

}  // namespace

extern constinit const ModelFamily kDebertaV2 = {
    .name = "deberta-v2",
    .doc = "as bert, masked tokens alone, scores of tokens and distances",
    .reads = kDebertaV2Reads,
    .tasks = kOnePartTasks<kDebertaV2Model>,
    .publish =
        [](ModelConfig& config) {
          config.norm_eps = 1e-7;
          config.distance_kinds = 256;
          config.far_distance = 512;
        },
    .find_problems = find_deberta_v2_problems,
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
