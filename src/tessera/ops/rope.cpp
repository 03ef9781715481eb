#include <cmath>

#include "tessera/ops/attention.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

/// Both elements of a pair are read before either is written, so that y may lie on x.
template <typename T>
void rope_reference(RefCall& c) {
  const Shape& shape = c.in_shape(0);
  const std::int64_t e = shape.back(), half = e / 2, tokens = c.in_shape(1).numel();
  const std::int64_t per_token =
      tokens == 0 ? 0 : shape.numel() / tokens / e;  // rows of e that share a position
  const double base = c.call.number("base");
  const T sign = c.call.flag("inverse") ? T(-1) : T(1);
  const std::int32_t* positions = c.in<std::int32_t>(1);
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < half; ++i) {
      const T rate =
          static_cast<T>(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(e)));
      const T angle = static_cast<T>(positions[token]) * rate;
      const T cosine = std::cos(angle), sine = sign * std::sin(angle);
      for (std::int64_t row = token * per_token; row < (token + 1) * per_token; ++row) {
        const T a = c.in<T>(0)[row * e + i], b = c.in<T>(0)[row * e + i + half];
        c.out<T>(0)[row * e + i] = a * cosine - b * sine;
        c.out<T>(0)[row * e + i + half] = b * cosine + a * sine;
      }
    }
  }
}

}  // namespace

constinit const OpDef kRope = {
    .name = "rope",
    .doc = "Rotates channel pairs (i, i + e/2) by angles that grow with position.",
    .attrs = {{"base", AttrKind::Float},
              {"inverse", AttrKind::Bool}},  // inverse: rotates backwards
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType &x = c.in(0), &positions = c.in(1);
      require(x.ndim() >= 3 && is_float(x.dtype) && positions.dtype == DType::I32 &&
                  positions.shape == Shape{x.shape[0], x.shape[1]},
              "rope: x is ", x, ", positions are ", positions,
              "; they need [b, s, ..., e] and i32 [b, s]");
      require(x.shape.back() % 2 == 0, "rope: x is ", x,
              ", channels are rotated in pairs; make head_dim even");
      return {x};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("b s ... e, b s -> b s ... e | e:whole | each 0", c.ndims());
    },
    // A rotation's inverse is its transpose.
    .grad = [](GradCall& g) -> void {
      g.din(0) = rope(g.dout(0), g.in(1), g.call.number("base"), !g.call.flag("inverse"), {});
    },
    .flops = [](const OpCall& c) -> double { return 3.0 * static_cast<double>(c.in(0).numel()); },
    .reference = {rope_reference<float>, rope_reference<double>},
    .in_place = {{{0, 0}}},
};

Value rope(Value x, Value positions, double base, bool inverse, Where where) {
  return x.builder().add(kRope, {x, positions}, {base, inverse}, where);
}

}  // namespace tessera
