#pragma once
/// Optimizers and schedules, as graphs over states.

#include <string>
#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

enum class OptimizerKind { AdamW, Adam, Sgd, Lamb };
enum class ScheduleKind { Constant, Linear, Cosine };

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::Cosine;
  double lr = 1e-3;   // the highest
  double min_lr = 0;  // after the decay
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  // steps, warm-up included, after which the lowest rate is reached
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = 0.9;  // Sgd
  bool nesterov = false;  // Sgd
  // Lamb; a highest of 0: none
  double min_trust_ratio = 0, max_trust_ratio = 0;
  double weight_decay = 0.01;  // of parameters of two or more dims; biases and norms do not decay
  double clip = 1.0;           // of the global gradient norm; 0: none
  ScheduleConfig schedule;
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

std::vector<std::string> problems(const OptimizerConfig& config);

/// The learning rate, an f64 scalar, after `samples` (an i64 scalar) samples of successful steps;
/// `batch` samples a step. Source: Megatron-LM's schedule in samples: linear warm-up from 0, then
/// the decay from lr to min_lr.
Value learning_rate(Value samples, const ScheduleConfig& config, std::int64_t batch);

struct UpdateResult {
  Value lr, grad_norm;  // f32 scalars
  Value ok;             // bool: loss and gradients are finite, and the update was made
};

/// Adds the update of all `parameters` (states) from their gradients: clipping by the global norm,
/// the optimizer, its moments and counters as states. Nothing but the samples consumed changes
/// where a gradient or the loss is not finite. States: optimizer.updates, schedule.samples,
/// data.samples (i64), and <parameter>.m, .v (Adam, Lamb) or .momentum (Sgd).
///
/// LAMB moves each parameter by p -= lr * ratio * u, u as lamb_direction makes it, where the trust
/// ratio is |p| / |u|, 1 where either norm is 0, else within the two bounds. Norms are of whole
/// tensors, however they are sharded, and every tensor is scaled, biases and norms too; a packed
/// projection is one tensor.
/// Source: You et al. 2020, arXiv 1904.00962, algorithm 2, with phi the identity.
UpdateResult update(const std::vector<Value>& parameters, const std::vector<Value>& grads,
                    Value loss, Value samples_consumed, std::int64_t batch,
                    const OptimizerConfig& config);

}  // namespace tessera
