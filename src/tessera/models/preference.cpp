#include "tessera/models/preference.h"

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/preference_pairs.h"
#include "tessera/models/causal_lm.h"
#include "tessera/models/layer.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

Value logits_of(const ModelConfig& c, Value ids, const Pass& pass) {
  return causal_transformer(c, layer_of(c), ids, pass);
}

/// Both rows of each pair behind each other: two of [b, s] -> [2 b, s]. What has a part of the pairs
/// has both rows of them.
Value rows_of_pairs(Value chosen, Value rejected) {
  const std::int64_t b = chosen.shape()[0], s = chosen.shape()[1];
  const Value both = concat({reshape(chosen, {b, 1, s}), reshape(rejected, {b, 1, s})}, 1);
  return reshape(both, {2 * b, s});
}

/// One of two columns: [b, 2] -> [b].
Value column(Value pairs, std::int64_t which) {
  return reshape(slice(pairs, 1, which, 1), {pairs.shape()[0]});
}

std::vector<Mean> preference_means(const ModelConfig& c, const TaskValues& in, const Pass& pass) {
  const Value ids = rows_of_pairs(in.at(kChosenIds), in.at(kRejectedIds)),
              labels = rows_of_pairs(in.at(kChosenLabels), in.at(kRejectedLabels));
  Builder& builder = ids.builder();
  const std::int64_t b = ids.shape()[0] / 2;
  const auto losses = [&](const ModelConfig& model, const Pass& how) {
    const Value logits = logits_of(model, ids, how);
    return cross_entropy(logits, labels, kIgnoredLabel).loss;  // [2 b, s]
  };
  const Value trained = losses(c, pass);
  Value first;
  {
    const SecondPass again(builder, c.lora.rank > 0 ? Again::Same : Again::Reference);
    ModelConfig plain = c;
    plain.lora = {};
    Pass without_dropout = pass;
    without_dropout.step = {};
    first = stop_gradient(losses(plain, without_dropout));
  }
  // Tokens are compared before they are added up: sums of many lose the digits that differ.
  const Value rewards =
      sum(reshape(first - trained, {b, 2, ids.shape()[1]}), 2) * c.preference.beta;
  const Value chosen = column(rewards, 0), rejected = column(rewards, 1),
              margins = chosen - rejected,
              is_there = max(counted_labels(in.at(kChosenLabels)), 1);  // [b]
  return {masked_mean(preference_loss(margins, c.preference.smoothing), is_there),
          masked_mean(chosen, is_there), masked_mean(rejected, is_there),
          masked_mean(margins, is_there),
          masked_mean(cast(less(rejected, chosen), DType::F32), is_there)};
}

}  // namespace

void find_preference_problems(const ModelConfig& c, FieldProblems& problems) {
  constexpr double kMost = 1e6;
  if (!(c.preference.beta > 0 && c.preference.beta <= kMost))
    problems.add({"dpo-beta"}, text("dpo-beta is ", c.preference.beta,
                                    "; it must be above 0 and at most ", kMost));
  if (!(c.preference.smoothing >= 0 && c.preference.smoothing < 0.5))
    problems.add({"dpo-label-smoothing"}, text("dpo-label-smoothing is ", c.preference.smoothing,
                                               "; it must be at least 0 and less than 0.5"));
}

Task preference(const ModelConfig& config) {
  const std::int64_t context = config.context;
  Task out = causal_lm(config);  // for its text
  out.name = kPreference;
  out.inputs.clear();
  for (const char* const ids : {kChosenIds, kRejectedIds})
    out.inputs.push_back({ids, DType::I32, {context}, config.vocabulary});
  for (const char* const labels : {kChosenLabels, kRejectedLabels})
    out.inputs.push_back({labels, DType::I32, {context}, config.vocabulary, /*ignorable=*/true});
  out.tokens = 2 * context;
  out.means = {{kLossMean},
               {"rewards/chosen", 0},
               {"rewards/rejected", 0},
               {"rewards/margins", 0},
               {"rewards/accuracies", 0}};
  out.perplexity_of = {};
  out.token_files = std::nullopt;
  out.packs_documents = false;
  out.measure = [config](const TaskValues& in, const Pass& pass) -> Measured {
    return preference_means(config, in, pass);
  };
  const auto samples = [context](const Dataset& data, DataPart part, const SampleChoices& choices) {
    return preference_pairs(data, part,
                            {.context = context,
                             .seed = choices.seed,
                             .buckets = choices.buckets,
                             .most = choices.most});
  };
  set_samples(out, samples);
  out.longest_sample = longest_preference;
  return out;
}

}  // namespace tessera
