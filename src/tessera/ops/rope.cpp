#include <algorithm>
#include <cmath>

#include "tessera/ops/attention.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

/// Both elements of a pair are read before either is written, so that y may lie on x.
template <typename T>
void rope_reference(RefCall& c) {
  const Shape& shape = c.in_shape(0);
  const std::vector<double>& rates = c.call.numbers("rates");
  const auto pairs = static_cast<std::int64_t>(rates.size());
  const std::int64_t e = shape.back(), tokens = c.in_shape(1).numel();
  const std::int64_t per_token =
      tokens == 0 ? 0 : shape.numel() / tokens / e;  // rows of e that share a position
  const T factor = static_cast<T>(c.call.number("factor"));
  const T sign = c.call.flag("inverse") ? T(-1) : T(1);
  if (pairs * 2 < e && c.in<T>(0) != c.out<T>(0))
    std::copy_n(c.in<T>(0), shape.numel(), c.out<T>(0));
  const std::int32_t* positions = c.in<std::int32_t>(1);
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const T rate = static_cast<T>(rates[static_cast<std::size_t>(i)]);
      const T angle = static_cast<T>(positions[token]) * rate;
      const T cosine = factor * std::cos(angle), sine = factor * sign * std::sin(angle);
      for (std::int64_t row = token * per_token; row < (token + 1) * per_token; ++row) {
        const T a = c.in<T>(0)[row * e + i], b = c.in<T>(0)[row * e + i + pairs];
        c.out<T>(0)[row * e + i] = a * cosine - b * sine;
        c.out<T>(0)[row * e + i + pairs] = b * cosine + a * sine;
      }
    }
  }
}

}  // namespace

constinit const OpDef kRope = {
    .name = "rope",
    .doc = "Rotates channel pairs by angles that grow with position.",
    .attrs = {{"rates", AttrKind::Floats},   // of pairs (i, i + p), p = how many
              {"factor", AttrKind::Float},   // of cosine and sine
              {"inverse", AttrKind::Bool}},  // rotates backwards
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType &x = c.in(0), &positions = c.in(1);
      require(x.ndim() >= 3 && is_float(x.dtype) && positions.dtype == DType::I32 &&
                  positions.shape == Shape{x.shape[0], x.shape[1]},
              "rope: x is ", x, ", positions are ", positions,
              "; they need [b, s, ..., e] and i32 [b, s]");
      const std::size_t pairs = c.numbers("rates").size();
      require(pairs > 0 && 2 * static_cast<std::int64_t>(pairs) <= x.shape.back(), "rope: x is ", x,
              ", ", pairs,
              " pairs of its channels are to be rotated; make head_dim even, and rotate a pair or "
              "more of what it has");
      return {x};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("b s ... e, b s -> b s ... e | e:whole | each 0", c.ndims());
    },
    // A rotation's inverse is its transpose; the factor's transpose is the factor.
    .grad = [](GradCall& g) -> void {
      g.din(0) = rope(g.dout(0), g.in(1), {g.call.numbers("rates"), g.call.number("factor")},
                      !g.call.flag("inverse"), {});
    },
    .flops = [](const OpCall& c) -> double {
      const double turned = 2.0 * static_cast<double>(c.numbers("rates").size());
      const TensorType& x = c.in(0);
      return 3.0 * static_cast<double>(x.numel()) * turned / static_cast<double>(x.shape.back());
    },
    .reference = {rope_reference<float>, rope_reference<double>},
    .in_place = {{{0, 0}}},
};

Value rope(Value x, Value positions, const RotaryRates& rates, bool inverse, Where where) {
  return x.builder().add(kRope, {x, positions}, {rates.rates, rates.factor, inverse}, where);
}

Value rope(Value x, Value positions, double base, bool inverse, Where where) {
  const std::int64_t width = x.shape().ndim() == 0 ? 0 : x.shape().back();
  return rope(x, positions, rotary_rates({.base = base}, width, 0), inverse, std::move(where));
}

}  // namespace tessera
