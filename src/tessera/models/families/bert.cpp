/// BERT (Devlin et al. 2018, arXiv 1810.04805): post-norm layers that see the whole sample, GELU.
/// It learns masked tokens, and whether the second part of a sample follows the first. There
/// are biases, and the tokens' decoder is the token embedding.

#include "tessera/base/joined.h"
#include "tessera/models/layer.h"
#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kBertModel = {.sentence_files = true};

constexpr ReadField kBertOwnReads[] = {{"residual-attention"}};
constexpr auto kBertReads = joined(kMaskedReads, kBertOwnReads);

void find_bert_problems(const ModelConfig& c, FieldProblems& problems) {
  if (c.residual_attention) find_held_score_problems(c, problems);
}

}  // namespace

extern constinit const ModelFamily kBert = {
    .name = "bert",
    .doc = "post-norm, sees both sides, masked tokens and next parts",
    .reads = kBertReads,
    .tasks = kMaskedTasks<kBertModel>,
    .publish = [](ModelConfig& config) { config.norm_eps = 1e-12; },
    .find_problems = find_bert_problems,
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
