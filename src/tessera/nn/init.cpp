#include "tessera/nn/init.h"

#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"

namespace tessera {

namespace {

Init normal_of(double deviation) { return {Init::Kind::Normal, deviation}; }
/// A uniform distribution in [-b, b) has a standard deviation of b / sqrt(3).
Init uniform_of(double deviation) { return {Init::Kind::Uniform, std::sqrt(3.0) * deviation}; }

double he_deviation(const Shape& weight, Fan fan, double gain) {
  const Fans fans = fans_of(weight);
  return gain / std::sqrt(fan == Fan::In ? fans.in : fans.out);
}

double xavier_deviation(const Shape& weight, double gain) {
  const Fans fans = fans_of(weight);
  return gain * std::sqrt(2.0 / (fans.in + fans.out));
}

}  // namespace

Fans fans_of(const Shape& weight) {
  require(weight.ndim() >= 2 && weight.numel() > 0, "a weight of shape ", weight,
          " has no inputs and outputs to count; it needs [out, in] or [out, in, window...], give "
          "other parameters a constant, a normal or a uniform first value");
  double window = 1;
  for (int d = 2; d < weight.ndim(); ++d) window *= static_cast<double>(weight[d]);
  return {static_cast<double>(weight[1]) * window, static_cast<double>(weight[0]) * window};
}

Init he_normal(const Shape& weight, Fan fan, double gain) {
  return normal_of(he_deviation(weight, fan, gain));
}
Init he_uniform(const Shape& weight, Fan fan, double gain) {
  return uniform_of(he_deviation(weight, fan, gain));
}
Init xavier_normal(const Shape& weight, double gain) {
  return normal_of(xavier_deviation(weight, gain));
}
Init xavier_uniform(const Shape& weight, double gain) {
  return uniform_of(xavier_deviation(weight, gain));
}

Value first_value(Builder& builder, const Init& init, const TensorType& type,
                  std::string_view path) {
  const std::string name = text(path, ".init");
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
