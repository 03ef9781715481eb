/// Megatron-LM's BERT (Shoeybi et al. 2019, arXiv 1909.08053, section 5.3): norms before each part,
/// and one behind the last layer; none behind the tables.

#include "tessera/base/joined.h"
#include "tessera/models/layer.h"
#include "tessera/models/masked_lm.h"

namespace tessera {

namespace {

constexpr MaskedModel kMegatronBertModel = {
    .sentence_files = true, .pre_norm = true, .bare_tables = true};

constexpr ReadField kMegatronBertOwnReads[] = {{"activation"}};
constexpr auto kMegatronBertReads = joined(kMaskedReads, kMegatronBertOwnReads);

void find_megatron_bert_problems(const ModelConfig& c, FieldProblems& problems) {
  constexpr std::string_view kKnown[] = {"gelu", "gelu_new"};
  find_activation_problems(c, kKnown, problems);
}

}  // namespace

extern constinit const ModelFamily kMegatronBert = {
    .name = "megatron-bert",
    .doc = "as bert, with norms before each part",
    .reads = kMegatronBertReads,
    .tasks = kMaskedTasks<kMegatronBertModel>,
    .publish = [](ModelConfig& config) { config.norm_eps = 1e-12; },
    .find_problems = find_megatron_bert_problems,
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
