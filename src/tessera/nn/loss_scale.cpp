#include "tessera/nn/loss_scale.h"

#include <string_view>

#include "tessera/base/text.h"
#include "tessera/ops/elementwise.h"

namespace tessera {

namespace {

constexpr double kLargest = 0x1p99;  // doubling ends here

Value scale_counter(Builder& builder, std::string_view name, std::int64_t first) {
  return builder.state(text("loss_scale.", name), {DType::I64, {}, {}}, Role::Scale,
                       {Init::Kind::Constant, static_cast<double>(first)});
}

}  // namespace

FieldProblems problems(const LossScaleConfig& c) {
  FieldProblems out;
  if (c.on && c.initial < c.least)
    out.add(
        {"initial-loss-scale", "min-loss-scale"},
        text("initial-loss-scale ", c.initial, " is below min-loss-scale ", c.least, "; raise it"));
  return out;
}

Value loss_scale(Builder& builder, const LossScaleConfig& config) {
  return builder.state("loss_scale", {DType::F32, {}, {}}, Role::Scale,
                       {Init::Kind::Constant, config.initial});
}

void update_loss_scale(Value scale, Value ok, const LossScaleConfig& config) {
  Builder& builder = scale.builder();
  const Value good = scale_counter(builder, "good_steps", 0),
              chances = scale_counter(builder, "chances", config.hysteresis);
  const auto whole = [&](std::int64_t n) {
    return builder.constant(static_cast<double>(n), DType::I64);
  };
  const Value good_now = good + 1.0, grows = less_equal(whole(config.window), good_now);
  const Value left = maximum(chances - 1.0, whole(0)), falls = less_equal(left, whole(0));
  // A scale that a run with a smaller least one left is not raised.
  const Value halved = minimum(scale, maximum(scale * 0.5, builder.constant(config.least)));
  // Gradients of 0 would let it grow to infinity, from where it does not come back.
  const Value doubled = minimum(scale * 2.0, maximum(scale, builder.constant(kLargest)));
  builder.next(scale, select(ok, select(grows, doubled, scale), select(falls, halved, scale)));
  builder.next(good, select(logical_and(ok, logical_not(grows)), good_now, whole(0)));
  builder.next(chances, select(ok, select(grows, whole(config.hysteresis), chances), left));
}

}  // namespace tessera
