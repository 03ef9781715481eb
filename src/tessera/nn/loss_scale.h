#pragma once
/// Dynamic loss scaling, as f16 needs it: its smallest number above 0 is 6e-8, and many gradients
/// are smaller. So the loss, and with it every gradient, is multiplied by a scale, and the update
/// divides by it again. A step with a gradient that is inf or nan is skipped, and tells that the
/// scale is too large.

#include <cstdint>

#include "tessera/base/field_problems.h"
#include "tessera/ir/builder.h"

namespace tessera {

struct LossScaleConfig {
  bool on = false;
  double initial = 65536, least = 1;
  std::int64_t window = 1000;   // good steps after which the scale is doubled
  std::int64_t hysteresis = 2;  // bad steps that it takes to halve it for the first time
  friend bool operator==(const LossScaleConfig&, const LossScaleConfig&) = default;
};

FieldProblems problems(const LossScaleConfig& config);

/// The scale of this step, an f32 scalar: a state, loss_scale.
Value loss_scale(Builder& builder, const LossScaleConfig& config);

/// Adds the scale of the next step to the graph. A bad step (`ok` is false) takes one of
/// `hysteresis` chances; when none is left it halves the scale, but not below `least`. `window`
/// good steps in a row double it, up to 2^99, and give the chances back. States:
/// loss_scale.good_steps, loss_scale.chances (i64). Source: Megatron-LM's DynamicGradScaler.
void update_loss_scale(Value scale, Value ok, const LossScaleConfig& config);

}  // namespace tessera
