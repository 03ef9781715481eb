#pragma once
/// Optimizers and schedules, as graphs over states.

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/field_problems.h"
#include "tessera/ir/builder.h"
#include "tessera/nn/loss_scale.h"
#include "tessera/nn/parameter_groups.h"

namespace tessera {

/// AdamWeightDecay is MindSpore's: AdamW without the correction of the moments' bias,
/// p -= lr * (m / (sqrt(v) + eps) + weight_decay * p). MindSpore's defaults for it are eps 1e-6 and
/// weight_decay 0.
enum class OptimizerKind { AdamW, Adam, Sgd, Lamb, AdamWeightDecay };
inline constexpr std::array<std::string_view, 5> kOptimizerNames = {"adamw", "adam", "sgd", "lamb",
                                                                    "adam-weight-decay"};
enum class ScheduleKind { Constant, Linear, Cosine };
inline constexpr std::array<std::string_view, 3> kScheduleNames = {"constant", "linear", "cosine"};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::Cosine;
  double lr = 1e-3;   // the highest
  double min_lr = 0;  // after the decay
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  // steps, warm-up included, after which min_lr is reached
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = 0.9;  // Sgd
  bool nesterov = false;  // Sgd
  // Lamb; max_trust_ratio 0: no upper bound
  double min_trust_ratio = 0, max_trust_ratio = 0;
  double weight_decay = 0.01;  // of parameters with two or more dims; not of biases and norms
  std::vector<ParameterGroup> groups = {};  // parameters that are updated otherwise
  /// Patterns of paths: what matches `frozen` is not trained, nor, where there are any, what does not
  /// match `trained`.
  std::vector<std::string> frozen = {}, trained = {};
  double clip = 1.0;  // largest global gradient norm; 0: no clipping
  ScheduleConfig schedule = {};
  LossScaleConfig loss_scale = {};
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

/// False of an option, by the name of its flag ("sgd-momentum"), that an optimizer does not read.
bool reads_option(OptimizerKind kind, std::string_view name);

FieldProblems problems(const OptimizerConfig& config);

/// Whether the parameter of that path is trained.
bool trains(const OptimizerConfig& config, std::string_view path);
/// The opposite, of one that freezes some; else empty. It refers to `config`.
std::function<bool(std::string_view path)> is_frozen(const OptimizerConfig& config);

/// The state of the rate that a program gives between steps, an f64 scalar: 0 where the schedule
/// says the rate, below 0 for a rate of 0.
inline constexpr const char* kGivenRateState = "schedule.lr";
inline constexpr double kScheduledRate = -1;  // the schedule says the rate
inline constexpr double kRateAsItIs = std::numeric_limits<double>::quiet_NaN();  // nothing is given
/// A rate, or kScheduledRate, as the state has it.
double stored_rate(double rate);
/// True of what may be given: kScheduledRate, and from 0 to 1e30.
bool is_rate(double rate);

/// The learning rate (an f64 scalar) as a function of the samples of successful steps so far (an
/// i64 scalar), with `batch` samples per step. Source: Megatron-LM's schedule in samples: linear
/// warm-up from 0, then the decay from lr to min_lr.
Value learning_rate(Value samples, const ScheduleConfig& config, std::int64_t batch);

struct UpdateResult {
  Value lr, grad_norm;  // f32 scalars
  Value ok;             // bool: loss and gradients are finite, and the update was made
};

/// Adds the update of all `parameters` (states) to the graph: clipping by the global norm and the
/// optimizer, with its moments and counters as states. If the loss or a gradient is not finite,
/// nothing changes but the count of samples consumed. States: optimizer.updates, schedule.samples,
/// data.samples (i64), kGivenRateState, and <parameter>.m, .v or, of Sgd, .momentum.
///
/// LAMB updates each parameter by p -= lr * ratio * u, with u from lamb_direction. The trust ratio
/// is |p| / |u| within the two bounds, or 1 if either norm is 0. Norms are of whole tensors,
/// however they are sharded, and every tensor is scaled, biases and norms too; a packed projection
/// is one tensor.
///
/// Errors: a pattern of config.groups that matches no parameter.
/// Source: You et al. 2020, arXiv 1904.00962, algorithm 2, with phi the identity.
/// `scale`: the loss scale that the gradients have been multiplied by, if there is one; its state
/// goes on by config.loss_scale.
UpdateResult update(const std::vector<Value>& parameters, const std::vector<Value>& grads,
                    Value loss, Value samples_consumed, std::int64_t batch,
                    const OptimizerConfig& config, Value scale = {});

}  // namespace tessera
