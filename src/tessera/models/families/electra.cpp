/// ELECTRA (Clark et al. 2020, arXiv 2003.10555): BERT whose tables may be narrower than the layers.
/// Masked tokens alone are learned by its generator, and the tasks on labels are for its
/// discriminator; pretraining is of both.

#include <array>

#include "tessera/models/replaced_tokens.h"

namespace tessera {

namespace {

constexpr MaskedModel kElectraModel = {
    .narrow = NarrowTables::IfWidthsDiffer,
    .text_head = classifier_block([](Value x) { return gelu(x, GeluForm::Erf); }),
    .choice_head = FirstRowHead{.dense = "sequence_summary",
                                .activation = [](Value x) { return gelu(x, GeluForm::Erf); }},
};

constexpr auto kElectraTasks = [] {
  auto out = kMaskedTasks<kElectraModel>;
  out[0].make = [](const ModelConfig& config) { return replaced_tokens(config, kElectraModel); };
  out[0].reads = kReplacedTokensReads;
  out[0].find_problems = find_replaced_token_problems;
  return out;
}();

}  // namespace

extern constinit const ModelFamily kElectra = {
    .name = "electra",
    .doc = "as bert, replaced tokens, tables of a width of their own",
    .reads = kNarrowReads,
    .tasks = kElectraTasks,
    .publish = [](ModelConfig& config) { config.norm_eps = 1e-12; },
    .stacks = stacks_with_generator,
    .cuts = kMaskedCuts,
    .special_tokens = kSpecialTokens,
};

}  // namespace tessera
