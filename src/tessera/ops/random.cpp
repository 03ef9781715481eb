#include "tessera/ops/random.h"

#include <cmath>

#include "tessera/base/philox.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

constexpr double kTwoPi = 6.283185307179586;

std::uint64_t step_of(RefCall& c, int operand) {
  return static_cast<std::uint64_t>(*c.in<std::int64_t>(operand));
}

void require_step(const OpCall& c, int operand) {
  require(c.in(operand) == TensorType{DType::I64, {}, {}}, c.op().name, ": step is ", c.in(operand),
          "; it must be an i64 scalar, the number of the step");
}

template <typename T>
void dropout_reference(RefCall& c) {
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  const std::uint64_t step = step_of(c, 1);
  const double p = c.call.number("p");
  // Both sides of the comparison are f32 whatever T is: every device and precision drops the same
  // elements.
  const float threshold = static_cast<float>(p);
  const T keep = static_cast<T>(1 - p);
  for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
    const auto index = static_cast<std::uint64_t>(logical_index(at, c.outs[0]));
    y[i] = unit_float(philox_bits(c.key, index, step)) >= threshold ? x[i] / keep : T(0);
  });
}

/// Fills the result with `number(key, logical index, step)`.
template <typename T, float (*number)(std::uint64_t, std::uint64_t, std::uint64_t)>
void fill_reference(RefCall& c) {
  T* y = c.out<T>(0);
  const std::uint64_t step = step_of(c, 0);
  for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
    y[i] = number(c.key, static_cast<std::uint64_t>(logical_index(at, c.outs[0])), step);
  });
}

float uniform_number(std::uint64_t key, std::uint64_t index, std::uint64_t step) {
  return unit_float(philox_bits(key, index, step));
}

TensorTypes filled_type(const OpCall& c) {
  require_step(c, 0);
  return {{DType::F32, Shape(c.integers("shape")), {}}};
}

/// Every dim is a factor that no operand has.
Factors free_dims(const OpCall& c) {
  Factors out = Factors::parse("-> ...", {c.out(0).ndim()});
  out.ins = {{}};
  return out;
}

Attrs filled_attrs(Builder& builder, const Shape& shape, std::string_view name) {
  return {std::vector<std::int64_t>(shape.begin(), shape.end()), builder.random_path(name)};
}

}  // namespace

constinit const OpDef kDropout = {
    .name = "dropout",
    .doc = "x / (1 - p), or 0 with probability p",
    .attrs = {{"p", AttrKind::Float}, {"key", AttrKind::Text}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_step(c, 1);
      require(is_float(c.in(0).dtype), "dropout: needs floats, x is ", c.in(0), "; cast it first");
      require(c.number("p") >= 0 && c.number("p") < 1, "dropout: p is ", c.number("p"),
              "; it must be at least 0 and below 1");
      return {c.in(0)};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("..., -> ... | each 0", c.ndims());
    },
    // The same key draws the same mask: it is linear, and its own gradient.
    .grad = [](GradCall& g) -> void {
      if (!g.wants(0)) return;
      g.din(0) = g.dout(0).builder().add(kDropout, {g.dout(0), g.in(1)},
                                         {g.call.number("p"), g.call.string("key")});
    },
    .flops = [](const OpCall& c) -> double { return 10.0 * static_cast<double>(c.out(0).numel()); },
    .reference = {dropout_reference<float>, dropout_reference<double>},
    .in_place = {InPlace{0, 0}},
    .traits = {.elementwise = true, .by_place = true},
};

constinit const OpDef kRandomUniform = {
    .name = "random_uniform",
    .doc = "uniform numbers in [0, 1)",
    .attrs = {kShapeOfResult, {"key", AttrKind::Text}},
    .infer = filled_type,
    .factors = free_dims,
    .reference = {fill_reference<float, uniform_number>, fill_reference<double, uniform_number>},
    .traits = {.by_place = true},
};

constinit const OpDef kRandomNormal = {
    .name = "random_normal",
    .doc = "standard normal numbers",
    .attrs = {kShapeOfResult, {"key", AttrKind::Text}},
    .infer = filled_type,
    .factors = free_dims,
    .reference = {fill_reference<float, normal_number>, fill_reference<double, normal_number>},
    .traits = {.by_place = true},
};

constinit const OpDef kRandomTruncatedNormal = {
    .name = "random_truncated_normal",
    .doc = "standard normal numbers, drawn again beyond two standard deviations",
    .attrs = {kShapeOfResult, {"key", AttrKind::Text}},
    .infer = filled_type,
    .factors = free_dims,
    .reference = {fill_reference<float, truncated_normal_number>,
                  fill_reference<double, truncated_normal_number>},
    .traits = {.by_place = true},
};

NormalPair normal_pair(std::uint32_t first, std::uint32_t second) {
  const double u = (first + 1.0) * 0x1p-32;  // in (0, 1]: its logarithm is finite
  const double radius = std::sqrt(-2 * std::log(u)), angle = kTwoPi * (second * 0x1p-32);
  return {static_cast<float>(radius * std::cos(angle)),
          static_cast<float>(radius * std::sin(angle))};
}

float normal_number(std::uint64_t key, std::uint64_t index, std::uint64_t step) {
  const PhiloxBlock words = philox(key, index / 4, step);
  const std::size_t pair = (index % 4) & 2;
  const NormalPair numbers = normal_pair(words[pair], words[pair + 1]);
  return index % 2 == 0 ? numbers.even : numbers.odd;
}

float truncated_normal_number(std::uint64_t key, std::uint64_t index, std::uint64_t step) {
  for (;; ++key) {
    const float number = normal_number(key, index, step);
    if (std::abs(number) <= 2.0f) return number;
  }
}

Value dropout(Value x, Value step, double p, std::string_view name, Where where) {
  if (p == 0) return x;
  return x.builder().add(kDropout, {x, step}, {p, x.builder().random_path(name)}, where);
}

Value random_uniform(Builder& builder, Shape shape, Value step, std::string_view name,
                     Where where) {
  return builder.add(kRandomUniform, {step}, filled_attrs(builder, shape, name), where);
}

Value random_normal(Builder& builder, Shape shape, Value step, std::string_view name, Where where) {
  return builder.add(kRandomNormal, {step}, filled_attrs(builder, shape, name), where);
}

Value random_truncated_normal(Builder& builder, Shape shape, Value step, std::string_view name,
                              Where where) {
  return builder.add(kRandomTruncatedNormal, {step}, filled_attrs(builder, shape, name), where);
}

bool is_random(const OpDef& op) { return op.attrs.find("key") >= 0; }

}  // namespace tessera
