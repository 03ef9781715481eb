#include "tessera/nn/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/nn/in_f32.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/top_k.h"

// Shapes below: b batch, s sequence, d width, e experts, k of them that a token chooses, g groups of
// samples.
namespace tessera {

namespace {

constexpr double kLeastSum = 1e-20;  // of sigmoids, which may all be 0

/// Of experts beyond the best groups of a token: never chosen.
Value within_groups(Value scores, const ExpertsConfig& config, Where where) {
  const std::int64_t b = scores.shape()[0], s = scores.shape()[1], e = config.experts,
                     groups = config.groups, each = e / groups;
  const Value grouped = reshape(scores, {b, s, groups, each}, where),
              best = sum(top_k(grouped, config.chosen / config.chosen_groups, where).values, {3}),
              ids = top_k(best, config.chosen_groups, where).ids,  // [b, s, chosen_groups]
      open = sum(one_hot(ids, groups, DType::F32), {2}),           // [b, s, groups]
      shown = reshape(open, {b, s, groups, 1}, where);
  Builder& builder = scores.builder();
  const Value none = builder.constant(-std::numeric_limits<double>::infinity());
  return reshape(select(less(builder.constant(0), shown), grouped, none), {b, s, e}, where);
}

/// Samples of a group, of a batch of `b`: fewer are one group.
std::int64_t samples_of(const ExpertsConfig& config, std::int64_t b) {
  const std::int64_t out = std::min(config.samples, b);
  require(b % out == 0, "moe-aux-loss-samples is ", out, ", which does not divide the ", b,
          " samples of a batch; give a divisor of that");
  return out;
}

/// Sums over the sequences of a group: [b, e] -> [g, e].
Value of_groups(Value x, std::int64_t samples) {
  if (samples == 1) return x;
  return sum(regroup(x, {x.shape()[0] / samples, samples, x.shape()[1]}), {1});
}

/// Sums over the tokens of a sequence: [b, s, k] -> [b, e].
Value counts_of(Value ids, std::int64_t experts) {
  return stop_gradient(sum(one_hot(ids, experts, DType::F32), {1, 2}));
}

/// What a router has computed of a batch.
struct Scored {
  Value logits, scores;  // [b, s, e]
  Value best;            // [b, s, k]: the choices by scores alone
};

/// The mean of groups, or of tokens [b, s, 1], without those of samples that do not count: `counted`
/// [g] or [b, 1, 1].
Mean mean_of_counted(Value values, Value counted) {
  return counted.valid() ? masked_mean(values, broadcast_to(counted, values.shape()))
                         : mean_of(values);
}

void measure(Routing& out, const Scored& scored, Value ids, const ExpertsConfig& config) {
  const auto experts = static_cast<double>(config.experts);
  const std::int64_t b = ids.shape()[0], samples = samples_of(config, b), s = ids.shape()[1];
  const auto tokens = static_cast<double>(s * samples);
  Value of_group, of_token;           // what counts
  const auto masked = [&](Value x) {  // [b, e]
    return out.counted.valid() ? x * reshape(out.counted, {b, 1}) : x;
  };
  const Value counts = counts_of(ids, config.experts);
  const bool own = scored.best.id() == ids.id();
  const Value best = own ? counts : counts_of(scored.best, config.experts),
              shares = of_groups(masked(best), samples) / static_cast<double>(config.chosen);
  Value probabilities = in_f32(scored.scores);
  if (config.score == RouterScore::Sigmoid)
    probabilities = probabilities / (sum(probabilities, {2}, KeepDim::Yes) + kLeastSum);
  const Value mass = of_groups(masked(sum(probabilities, {1})), samples);  // [g, e]
  out.tokens.push_back(sum(counts, {0}));
  Value balance = sum(shares * mass, {1}) * (experts / (tokens * tokens));
  if (out.counted.valid()) {
    // A group of fewer samples is a smaller group.
    const Value share = reshape(of_groups(reshape(out.counted, {b, 1}), samples), {b / samples}) /
                        static_cast<double>(samples);
    balance = balance / maximum(share * share, share.builder().constant(kLeastSum));
    of_group = share, of_token = reshape(out.counted, {b, 1, 1});
  }
  out.balance.push_back(mean_of_counted(balance, of_group));
  const Value wide = in_f32(scored.logits), largest = stop_gradient(max(wide, {2}, KeepDim::Yes)),
              normal = log(sum(exp(wide - largest), {2}, KeepDim::Yes)) + largest;  // [b, s, 1]
  out.z_loss.push_back(mean_of_counted(normal * normal, of_token));
}

/// By what experts keep tokens, the largest first; of equal ones the first tokens.
Value drop_keys(Value weights, const ExpertsConfig& config, const Pass& pass) {
  Builder& builder = weights.builder();
  const Shape& shape = weights.shape();
  switch (config.drop) {
    case DropPolicy::Probs: return stop_gradient(in_f32(weights));
    case DropPolicy::Choice: return -iota(builder, shape, 2, DType::F32);
    case DropPolicy::Random:
      if (pass.step.valid()) return random_uniform(builder, shape, pass.step, "kept");
      break;
    case DropPolicy::Position: break;
  }
  return broadcast_to(builder.constant(0), shape);
}

/// ids [b, s, k], of which each expert keeps as many of a group as it has room for.
Value drop(Value ids, Value weights, const ExpertsConfig& config, const Pass& pass, Where where) {
  const std::int64_t b = ids.shape()[0], s = ids.shape()[1], k = ids.shape()[2],
                     samples = samples_of(config, b), tokens = samples * s;
  const double mean =
      static_cast<double>(tokens) * static_cast<double>(k) / static_cast<double>(config.experts);
  const auto room = static_cast<std::int64_t>(
      std::min(std::ceil(config.capacity * mean), static_cast<double>(tokens)));
  const Shape grouped{b / samples, tokens, k};
  const Value kept = within_capacity(regroup(ids, grouped, where),
                                     regroup(drop_keys(weights, config, pass), grouped, where),
                                     std::max(room, config.least_capacity), where);
  return regroup(kept, {b, s, k}, where);
}

/// x times numbers around 1.
Value jittered(Value x, double jitter, const Pass& pass, Where where) {
  if (jitter == 0 || !pass.step.valid()) return x;
  const Value drawn = random_uniform(x.builder(), x.shape(), pass.step, "jitter", where);
  return x * (drawn * (2 * jitter) + (1 - jitter));
}

}  // namespace

Routed route(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const ExpertsConfig& config = layer.experts;
  const Value logits = linear(jittered(x, config.jitter, pass, where), "router", config.experts,
                              {layer.bias || layer.ffn_bias, layer.init}, where);
  const bool softmaxes = config.score == RouterScore::Softmax;
  const Value scores = softmaxes ? softmax(logits, -1, where) : sigmoid(in_f32(logits));
  Value judged = scores, bias;
  if (config.bias) {
    const Scope router(x.builder(), "router", where);
    bias = x.builder().state("expert_bias", {DType::F32, {config.experts}, {}}, Role::Buffer, {},
                             where);
    judged = judged + bias;
  }
  if (config.groups > 0) judged = within_groups(judged, config, where);
  auto [values, ids] = top_k(judged, config.chosen, where);
  const Value best = judged.id() == scores.id() ? ids : top_k(scores, config.chosen, where).ids;
  if (judged.id() != scores.id()) values = take_along(scores, ids);
  Value weights = values;
  if (!config.pre_softmax) {
    const Value all = sum(values, {2}, KeepDim::Yes);
    weights = values / (softmaxes ? all : all + kLeastSum);
  }
  if (config.scale != 1) weights = weights * config.scale;
  if (pass.routing != nullptr) {
    measure(*pass.routing, {logits, scores, best}, ids, config);
    if (bias.valid())
      pass.routing->biases.push_back({bias, pass.routing->tokens.back(), config.bias_rate});
  }
  if (config.capacity > 0 && !pass.position.valid()) {
    ids = drop(ids, weights, config, pass, where);
    const Value none = x.builder().constant(0, DType::I32);
    if (pass.routing != nullptr)
      pass.routing->dropped.push_back(mean_of(cast(less(ids, none), DType::F32)));
  }
  return {ids, weights};
}

Value RouterBias::next() const {
  const Value mean = sum(tokens, {0}, KeepDim::Yes) / static_cast<double>(tokens.shape()[0]),
              up = cast(less(tokens, mean), DType::F32),
              down = cast(less(mean, tokens), DType::F32);
  return bias + (up - down) * rate;
}

}  // namespace tessera
