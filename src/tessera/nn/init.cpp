#include "tessera/nn/init.h"

#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"

namespace tessera {

Fans fans_of(const Shape& weight) {
  require(weight.ndim() >= 2 && weight.numel() > 0, "a weight of shape ", weight,
          " has no inputs and outputs to count; it needs [out, in] or [out, in, window...], "
          "initialize other parameters as constant, normal or uniform");
  double window = 1;
  for (int d = 2; d < weight.ndim(); ++d) window *= static_cast<double>(weight[d]);
  return {static_cast<double>(weight[1]) * window, static_cast<double>(weight[0]) * window};
}

Init WeightInit::of(const Shape& weight) const {
  if (width == Width::Given) return {kind, value};
  const Fans fans = fans_of(weight);
  const double deviation = width == Width::FanIn    ? value / std::sqrt(fans.in)
                           : width == Width::FanOut ? value / std::sqrt(fans.out)
                                                    : value * std::sqrt(2.0 / (fans.in + fans.out));
  // A uniform distribution in [-b, b) has a standard deviation of b / sqrt(3).
  return {kind, kind == Init::Kind::Uniform ? std::sqrt(3.0) * deviation : deviation};
}

namespace {

WeightInit by_fan(Init::Kind kind, Fan fan, double gain) {
  return {kind, gain, fan == Fan::In ? WeightInit::Width::FanIn : WeightInit::Width::FanOut};
}

}  // namespace

WeightInit he_normal_init(Fan fan, double gain) { return by_fan(Init::Kind::Normal, fan, gain); }
WeightInit he_uniform_init(Fan fan, double gain) { return by_fan(Init::Kind::Uniform, fan, gain); }
WeightInit xavier_normal_init(double gain) {
  return {Init::Kind::Normal, gain, WeightInit::Width::BothFans};
}
WeightInit xavier_uniform_init(double gain) {
  return {Init::Kind::Uniform, gain, WeightInit::Width::BothFans};
}

WeightInit residual_init(WeightInit init, std::int64_t parts) {
  init.value /= std::sqrt(static_cast<double>(parts));
  return init;
}

Value first_value(Builder& builder, const Init& init, const TensorType& type,
                  std::string_view path) {
  const std::string name = text(path, ".init");
  if (type.dtype != DType::F32 && is_float(type.dtype) && init.kind != Init::Kind::Constant)
    return cast(first_value(builder, init, {DType::F32, type.shape, {}}, path), type.dtype);
  if (init.kind == Init::Kind::Constant)
    return broadcast_to(builder.constant(init.value, type.dtype), type.shape);
  const Value start = builder.constant(0, DType::I64);  // the step
  switch (init.kind) {
    case Init::Kind::Normal: return random_normal(builder, type.shape, start, name) * init.value;
    case Init::Kind::TruncatedNormal:
      return random_truncated_normal(builder, type.shape, start, name) * init.value;
    case Init::Kind::Uniform:  // the difference is exact: one rounding, by the product
      return (random_uniform(builder, type.shape, start, name) - 0.5) * (2 * init.value);
    case Init::Kind::Constant: break;
  }
  throw Broken("a first value of no kind");
}

}  // namespace tessera
