#include "tessera/nn/optimizer.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <span>

#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/sum_squares.h"

namespace tessera {

namespace {

Value counter(Builder& builder, std::string_view name) {
  return builder.state(name, {DType::I64, {}, {}}, Role::Counter, {});
}

Value constant(Value like, double value) { return like.builder().constant(value, like.dtype()); }

/// The rate that a program has given, where it has.
Value given_or(Value scheduled) {
  Builder& builder = scheduled.builder();
  const Value given = builder.state(kGivenRateState, {DType::F64, {}, {}}, Role::Rate, {}),
              zero = constant(given, 0);
  return select(equal(given, zero), scheduled, maximum(given, zero));
}

constexpr double kLarge = 1e30;

constexpr OptimizerKind kAdams[] = {OptimizerKind::AdamW, OptimizerKind::Adam, OptimizerKind::Lamb,
                                    OptimizerKind::AdamWeightDecay};
constexpr OptimizerKind kSgdAlone[] = {OptimizerKind::Sgd}, kLambAlone[] = {OptimizerKind::Lamb};

/// Which optimizers read an option; those that are not named here, all do.
struct OptionReaders {
  std::string_view option;
  std::span<const OptimizerKind> kinds;
};
constexpr OptionReaders kReaders[] = {{"adam-beta1", kAdams},
                                      {"adam-beta2", kAdams},
                                      {"adam-eps", kAdams},
                                      {"sgd-momentum", kSgdAlone},
                                      {"nesterov", kSgdAlone},
                                      {"lamb-min-trust-ratio", kLambAlone},
                                      {"lamb-max-trust-ratio", kLambAlone}};

struct Global {
  Value lr, scale, norm, ok, correction1, correction2;
};

/// What all parameters share: the norm, the clipping factor, whether to step, the learning rate;
/// and the counters.
Global shared(const std::vector<Value>& parameters, const std::vector<Value>& grads, Value loss,
              Value consumed, std::int64_t batch, const OptimizerConfig& config, Value scale) {
  Builder& builder = loss.builder();
  std::vector<Value> squares;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    builder.set_mark({builder.node(parameters[i]).block, Phase::Update, -1, Where::here()});
    squares.push_back(sum_squares(grads[i]));
  }
  builder.set_mark({"", Phase::Update, -1, Where::here()});
  Global out;
  const Value square = add_n(squares);
  out.norm = scale.valid() ? sqrt(square) / scale : sqrt(square);
  out.ok = logical_and(is_finite(square), is_finite(loss));
  const Value one = builder.constant(1.0);
  out.scale = config.clip > 0 ? minimum(one, config.clip / (out.norm + 1e-6)) : one;
  if (scale.valid()) {
    out.scale = out.scale / scale;
    update_loss_scale(scale, out.ok, config.loss_scale);
  }

  const Value updates = counter(builder, "optimizer.updates"),
              samples = counter(builder, "schedule.samples");
  out.lr = cast(given_or(learning_rate(samples, config.schedule, batch)), DType::F32);
  const Value t = updates + 1.0;
  const auto correction = [&](double beta) {
    if (config.kind == OptimizerKind::AdamWeightDecay) return one;
    const Value t64 = cast(t, DType::F64);
    return cast(1.0 - power(constant(t64, beta), t64), DType::F32);
  };
  out.correction1 = correction(config.beta1);
  out.correction2 = correction(config.beta2);
  builder.next(updates, select(out.ok, t, updates));
  builder.next(samples, select(out.ok, samples + static_cast<double>(batch), samples));
  builder.next(consumed, consumed + static_cast<double>(batch));
  return out;
}

/// |p| / |u| within the bounds; 1 where either is 0.
Value trust_ratio(Value p, Value u, const OptimizerConfig& config) {
  const Value weight = sqrt(sum_squares(p)), move = sqrt(sum_squares(u));
  const Value zero = constant(weight, 0);
  Value ratio = weight / move;
  if (config.max_trust_ratio > 0) ratio = minimum(ratio, constant(ratio, config.max_trust_ratio));
  if (config.min_trust_ratio > 0) ratio = maximum(ratio, constant(ratio, config.min_trust_ratio));
  return select(logical_and(less(zero, weight), less(zero, move)), ratio, constant(ratio, 1));
}

std::string path_of(Value parameter) {
  return std::get<std::string>(parameter.builder().node(parameter).attrs[0]);
}

void update_one(Value p, Value g, const Global& global, const OptimizerConfig& config) {
  Builder& builder = p.builder();
  const std::string path = path_of(p);
  const Name block = builder.node(p).block;
  builder.set_mark({block, Phase::Update, -1, Where::here()});
  const std::string leaf = block.empty() ? path : path.substr(std::string_view(block).size() + 1);
  const auto moment = [&](std::string_view suffix) {
    return builder.state(text(leaf, ".", suffix), p.type(), Role::Moment, {});
  };
  const ParameterGroup* group = group_of(path, config.groups);
  const double by_dims = p.ndim() >= 2 ? config.weight_decay : 0.0;
  const double decay = group == nullptr ? by_dims : group->weight_decay.value_or(by_dims);
  const double lr_scale = group == nullptr ? 1.0 : group->lr_scale;
  const Value lr = lr_scale == 1 ? global.lr : global.lr * lr_scale;
  if (config.kind == OptimizerKind::Sgd) {
    const Value u = moment("momentum");
    const SgdResult next =
        sgd(p, u, g, lr, global.scale, global.ok, config.momentum, decay, config.nesterov);
    builder.next(p, next.parameter);
    builder.next(u, next.momentum);
    return;
  }
  const Value m = moment("m"), v = moment("v");
  const AdamOptions options{config.beta1, config.beta2, config.eps, decay,
                            config.kind != OptimizerKind::Adam};
  if (config.kind == OptimizerKind::Lamb) {
    const LambResult next = lamb_direction(p, m, v, g, global.scale, global.correction1,
                                           global.correction2, global.ok, options);
    const Value rate = lr * trust_ratio(p, next.direction, config);
    builder.next(p, select(global.ok, p - next.direction * rate, p));
    builder.next(m, next.m);
    builder.next(v, next.v);
    return;
  }
  const AdamResult next = adam(p, m, v, g, lr, global.scale, global.correction1, global.correction2,
                               global.ok, options);
  builder.next(p, next.parameter);
  builder.next(m, next.m);
  builder.next(v, next.v);
}

}  // namespace

bool reads_option(OptimizerKind kind, std::string_view name) {
  const OptionReaders* const found = std::ranges::find(kReaders, name, &OptionReaders::option);
  return found == std::end(kReaders) || std::ranges::find(found->kinds, kind) != found->kinds.end();
}

bool trains(const OptimizerConfig& config, std::string_view path) {
  const auto is_of = [&](const std::vector<std::string>& patterns) {
    return std::ranges::any_of(patterns,
                               [&](const std::string& pattern) { return matches(pattern, path); });
  };
  return !is_of(config.frozen) && (config.trained.empty() || is_of(config.trained));
}

std::function<bool(std::string_view path)> is_frozen(const OptimizerConfig& config) {
  if (config.frozen.empty() && config.trained.empty()) return nullptr;
  return [&config](std::string_view path) { return !trains(config, path); };
}

FieldProblems problems(const OptimizerConfig& c) {
  FieldProblems out;
  // `whose` follows the name, for a group of parameters.
  const auto within = [&](std::string_view name, double value, double low, double high, bool open,
                          const std::string& whose = "") {
    const bool legal = value >= low && (open ? value < high : value <= high);
    if (!legal)
      out.add({name}, text(name, whose, " is ", value, "; it must be at least ", low, " and ",
                           open ? "less than " : "at most ", high));
    return legal;
  };
  // Of two that are compared, one that is no value at all is no second problem.
  const bool lr = within("lr", c.schedule.lr, 0, kLarge, false),
             min_lr = within("min-lr", c.schedule.min_lr, 0, kLarge, false);
  within("adam-beta1", c.beta1, 0, 1, true);
  within("adam-beta2", c.beta2, 0, 1, true);
  within("adam-eps", c.eps, 0, kLarge, false);
  // Where a gradient was always 0, both moments are: 0 / (0 + eps).
  constexpr double kLeast = std::numeric_limits<float>::min();
  if (c.kind != OptimizerKind::Sgd && c.eps >= 0 && c.eps < kLeast)
    out.add({"adam-eps", "optimizer"},
            text("adam-eps is ", c.eps, ", too small for f32: a weight without a gradient ",
                 "would become 0 / 0; give at least 1e-37, as 1e-8"));
  const bool least = within("lamb-min-trust-ratio", c.min_trust_ratio, 0, kLarge, false),
             most = within("lamb-max-trust-ratio", c.max_trust_ratio, 0, kLarge, false);
  if (least && most && c.max_trust_ratio > 0 && c.min_trust_ratio > c.max_trust_ratio) {
    out.add({"lamb-min-trust-ratio", "lamb-max-trust-ratio"},
            text("lamb-min-trust-ratio ", c.min_trust_ratio, " is above lamb-max-trust-ratio ",
                 c.max_trust_ratio, "; lower it"));
  }
  within("sgd-momentum", c.momentum, 0, 1, true);
  within("weight-decay", c.weight_decay, 0, kLarge, false);
  for (const ParameterGroup& group : c.groups) {
    const std::string of = " of the group " + join(group.paths);
    if (group.weight_decay) within("weight_decay", *group.weight_decay, 0, kLarge, false, of);
    within("lr_scale", group.lr_scale, 0, kLarge, false, of);
  }
  within("clip-grad", c.clip, 0, kLarge, false);
  for (const FieldProblem& problem : problems(c.loss_scale)) out.add(problem);
  if (lr && min_lr && c.schedule.min_lr > c.schedule.lr) {
    out.add({"min-lr", "lr"},
            text("min-lr ", c.schedule.min_lr, " is above lr ", c.schedule.lr, "; lower it"));
  }
  if (c.schedule.warmup_steps < 0)
    out.add({"lr-warmup-steps"},
            text("lr-warmup-steps is ", c.schedule.warmup_steps, "; it must be 0 or more"));
  if (c.schedule.kind != ScheduleKind::Constant &&
      c.schedule.warmup_steps >= c.schedule.decay_steps) {
    out.add({"lr-warmup-steps", "lr-decay-steps", "lr-decay-style", "steps", "epochs"},
            text("lr-warmup-steps ", c.schedule.warmup_steps, " must be less than lr-decay-steps ",
                 c.schedule.decay_steps));
  }
  return out;
}

double stored_rate(double rate) { return rate == kScheduledRate ? 0 : rate == 0 ? -1 : rate; }

bool is_rate(double rate) { return rate == kScheduledRate || (rate >= 0 && rate <= kLarge); }

Value learning_rate(Value samples, const ScheduleConfig& config, std::int64_t batch) {
  const Value n = cast(samples, DType::F64);
  const auto samples_of = [&](std::int64_t steps) {
    return static_cast<double>(steps) * static_cast<double>(batch);
  };
  const double warmup = samples_of(config.warmup_steps), decay = samples_of(config.decay_steps);
  const Value highest = constant(n, config.lr);
  Value lr = highest;
  if (config.kind != ScheduleKind::Constant) {
    const Value r = (n - warmup) / (decay - warmup);
    const Value share =
        config.kind == ScheduleKind::Linear ? 1.0 - r : (cos(r * std::numbers::pi) + 1.0) * 0.5;
    lr = share * (config.lr - config.min_lr) + config.min_lr;
    lr = select(less(constant(n, decay), n), constant(n, config.min_lr), lr);
  }
  if (config.warmup_steps == 0) return lr;
  return select(less_equal(n, constant(n, warmup)), n * (config.lr / warmup), lr);
}

UpdateResult update(const std::vector<Value>& parameters, const std::vector<Value>& grads,
                    Value loss, Value samples_consumed, std::int64_t batch,
                    const OptimizerConfig& config, Value scale) {
  Builder& builder = loss.builder();
  const Mark outer = builder.mark();
  std::vector<std::string> paths;
  for (const Value parameter : parameters) paths.push_back(path_of(parameter));
  require_matches(config.groups, paths);
  const Global global = shared(parameters, grads, loss, samples_consumed, batch, config, scale);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    update_one(parameters[i], grads[i], global, config);
  builder.set_mark(outer);
  return {global.lr, global.norm, global.ok};
}

}  // namespace tessera
