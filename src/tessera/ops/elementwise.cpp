#include "tessera/ops/elementwise.h"

#include <algorithm>
#include <cmath>

#include "tessera/ops/elementwise/from_scalar.h"
#include "tessera/ops/quotient.h"
#include "tessera/ops/reduce.h"
#include "tessera/tensor/monoid.h"

namespace tessera {

namespace {

using elementwise::binary_op;
using elementwise::not_linear;
using elementwise::unary_op;

using Add = decltype([](auto a, auto b) { return a + b; });
using Sub = decltype([](auto a, auto b) { return a - b; });
using Mul = decltype([](auto a, auto b) { return a * b; });
using Div = decltype([](auto a, auto b) { return quotient(a, b); });
using Max = decltype([](auto a, auto b) { return combine(Monoid::Max, a, b); });
using Min = decltype([](auto a, auto b) { return combine(Monoid::Min, a, b); });
using Power = decltype([](auto a, auto b) { return std::pow(a, b); });
using Negate = decltype([](auto a) { return -a; });
using Exp = decltype([](auto a) { return std::exp(a); });
using Log = decltype([](auto a) { return std::log(a); });
using Sqrt = decltype([](auto a) { return std::sqrt(a); });
using Rsqrt = decltype([](auto a) { return 1 / std::sqrt(a); });
using Tanh = decltype([](auto a) { return std::tanh(a); });
using Erf = decltype([](auto a) { return std::erf(a); });
using Cos = decltype([](auto a) { return std::cos(a); });
using Abs = decltype([](auto a) { return std::abs(a); });
using Sigmoid = decltype([](auto a) { return 1 / (1 + std::exp(-a)); });
using Same = decltype([](auto a) { return a; });

Factors joint(const OpCall& c) { return elementwise_factors(c, Linear::Joint, {0, 1}); }
Factors each(const OpCall& c) { return elementwise_factors(c, Linear::Each, {0, 1}); }
Factors first(const OpCall& c) { return elementwise_factors(c, Linear::Each, {0}); }
/// Of integers it rounds, so quotients of terms are not the terms of a quotient.
Factors dividend(const OpCall& c) { return is_float(c.in(0).dtype) ? first(c) : not_linear(c); }
std::optional<View> same_elements(const OpCall&, const Shape& strides) { return View{0, strides}; }

}  // namespace

constinit const OpDef kAdd = binary_op<Add>("add", "a + b", joint, [](GradCall& g) -> void {
  if (g.wants(0)) g.din(0) = unbroadcast(g.dout(0), g.in(0).shape());
  if (g.wants(1)) g.din(1) = unbroadcast(g.dout(0), g.in(1).shape());
});
constinit const OpDef kSub = binary_op<Sub>("sub", "a - b", joint, [](GradCall& g) -> void {
  if (g.wants(0)) g.din(0) = unbroadcast(g.dout(0), g.in(0).shape());
  if (g.wants(1)) g.din(1) = unbroadcast(-g.dout(0), g.in(1).shape());
});
constinit const OpDef kMul = binary_op<Mul>(
    "mul", "a * b", each,
    [](GradCall& g) -> void {
      if (g.wants(0)) g.din(0) = unbroadcast(g.dout(0) * g.in(1), g.in(0).shape());
      if (g.wants(1)) g.din(1) = unbroadcast(g.dout(0) * g.in(0), g.in(1).shape());
    },
    0b11);
constinit const OpDef kDiv = binary_op<Div>(
    "div", "a / b; of integers rounded toward 0, and 0 where b is 0", dividend,
    [](GradCall& g) -> void {
      const Value scaled = g.dout(0) / g.in(1);
      if (g.wants(0)) g.din(0) = unbroadcast(scaled, g.in(0).shape());
      if (g.wants(1)) g.din(1) = unbroadcast(-(scaled * g.out(0)), g.in(1).shape());
    },
    0b1);
constinit const OpDef kMaximum = binary_op<Max>(
    "maximum", "the larger of a and b; NaN if either is", not_linear, [](GradCall& g) -> void {
      const Value left = less_equal(g.in(1), g.in(0)), zero = g.dout(0) * 0.0;
      if (g.wants(0)) g.din(0) = unbroadcast(select(left, g.dout(0), zero), g.in(0).shape());
      if (g.wants(1)) g.din(1) = unbroadcast(select(left, zero, g.dout(0)), g.in(1).shape());
    });
constinit const OpDef kMinimum = binary_op<Min>(
    "minimum", "the smaller of a and b; NaN if either is", not_linear, [](GradCall& g) -> void {
      const Value left = less_equal(g.in(0), g.in(1)), zero = g.dout(0) * 0.0;
      if (g.wants(0)) g.din(0) = unbroadcast(select(left, g.dout(0), zero), g.in(0).shape());
      if (g.wants(1)) g.din(1) = unbroadcast(select(left, zero, g.dout(0)), g.in(1).shape());
    });
constinit const OpDef kPower =
    binary_op<Power>("power", "a to the power b, a > 0", not_linear, [](GradCall& g) -> void {
      const Value scaled = g.dout(0) * g.out(0);
      if (g.wants(0)) g.din(0) = unbroadcast(scaled * g.in(1) / g.in(0), g.in(0).shape());
      if (g.wants(1)) g.din(1) = unbroadcast(scaled * log(g.in(0)), g.in(1).shape());
    });

constinit const OpDef kNegate = unary_op<Negate>(
    "negate", "-x", first, [](GradCall& g) -> void { g.din(0) = -g.dout(0); }, 0b1);
constinit const OpDef kExp =
    unary_op<Exp>("exp", "e to the power x", not_linear,
                  [](GradCall& g) -> void { g.din(0) = g.dout(0) * g.out(0); });
constinit const OpDef kLog =
    unary_op<Log>("log", "natural logarithm", not_linear,
                  [](GradCall& g) -> void { g.din(0) = g.dout(0) / g.in(0); });
constinit const OpDef kSqrt =
    unary_op<Sqrt>("sqrt", "square root", not_linear,
                   [](GradCall& g) -> void { g.din(0) = g.dout(0) * 0.5 / g.out(0); });
constinit const OpDef kRsqrt =
    unary_op<Rsqrt>("rsqrt", "1 / sqrt(x)", not_linear,
                    [](GradCall& g) -> void { g.din(0) = g.dout(0) * -0.5 * g.out(0) / g.in(0); });
constinit const OpDef kTanh = unary_op<Tanh>(
    "tanh", "hyperbolic tangent", not_linear,
    [](GradCall& g) -> void { g.din(0) = g.dout(0) * (1.0 - g.out(0) * g.out(0)); }, 0b1);
constinit const OpDef kErf =
    unary_op<Erf>("erf", "error function", not_linear, [](GradCall& g) -> void {
      g.din(0) = g.dout(0) * (exp(-(g.in(0) * g.in(0))) * 1.1283791670955126);  // 2 / sqrt(pi)
    });
constinit const OpDef kCos = unary_op<Cos>("cos", "cosine of radians", not_linear, nullptr);
constinit const OpDef kAbs = unary_op<Abs>(
    "abs", "absolute value; its gradient at 0 is 0", not_linear, [](GradCall& g) -> void {
      const Value zero = g.in(0).builder().constant(0, g.in(0).dtype());
      const Value falls = select(less(g.in(0), zero), -g.dout(0), zero);
      g.din(0) = select(less(zero, g.in(0)), g.dout(0), falls);
    });
constinit const OpDef kSigmoid = unary_op<Sigmoid>(
    "sigmoid", "1 / (1 + exp(-x))", not_linear,
    [](GradCall& g) -> void { g.din(0) = g.dout(0) * (g.out(0) * (1.0 - g.out(0))); });
constinit const OpDef kIdentity = [] {
  OpDef op = unary_op<Same>(
      "identity", "the same value", first, [](GradCall& g) -> void { g.din(0) = g.dout(0); }, 0b1);
  op.view = same_elements;
  return op;
}();
constinit const OpDef kWholeBatch = [] {
  OpDef op = unary_op<Same>("whole_batch", "the same value, of the whole batch at once", first,
                            [](GradCall& g) -> void { g.din(0) = whole_batch(g.dout(0)); });
  op.view = same_elements;
  return op;
}();

constinit const OpDef kStopGradient = [] {
  OpDef op =
      unary_op<Same>("stop_gradient", "the same value, which gets no gradient", first, nullptr);
  op.view = same_elements;
  op.traits.stops_gradient = true;
  return op;
}();
constinit const OpDef kGradient = [] {
  OpDef op = unary_op<Same>("grad", "the end of a parameter's gradient, where it is finished",
                            first, nullptr);
  op.attrs = {{"path", AttrKind::Text}};
  op.view = same_elements;
  return op;
}();

Value operator+(At a, Value b) { return a.builder().add(kAdd, {a, b}, {}, a.where); }
Value operator-(At a, Value b) { return a.builder().add(kSub, {a, b}, {}, a.where); }
Value operator*(At a, Value b) { return a.builder().add(kMul, {a, b}, {}, a.where); }
Value operator/(At a, Value b) { return a.builder().add(kDiv, {a, b}, {}, a.where); }
Value operator-(At a) { return a.builder().add(kNegate, {a}, {}, a.where); }
Value operator+(At a, double b) { return a + a.builder().constant(b, a.dtype(), a.where); }
Value operator-(At a, double b) { return a - a.builder().constant(b, a.dtype(), a.where); }
Value operator-(double a, At b) {
  return At(b.builder().constant(a, b.dtype(), b.where), b.where) - b;
}
Value operator*(At a, double b) { return a * a.builder().constant(b, a.dtype(), a.where); }
Value operator/(At a, double b) { return a / a.builder().constant(b, a.dtype(), a.where); }
Value operator/(double a, At b) {
  return At(b.builder().constant(a, b.dtype(), b.where), b.where) / b;
}
Value maximum(At a, Value b) { return a.builder().add(kMaximum, {a, b}, {}, a.where); }
Value minimum(At a, Value b) { return a.builder().add(kMinimum, {a, b}, {}, a.where); }
Value power(At x, Value y) { return x.builder().add(kPower, {x, y}, {}, x.where); }
Value exp(At x) { return x.builder().add(kExp, {x}, {}, x.where); }
Value log(At x) { return x.builder().add(kLog, {x}, {}, x.where); }
Value sqrt(At x) { return x.builder().add(kSqrt, {x}, {}, x.where); }
Value rsqrt(At x) { return x.builder().add(kRsqrt, {x}, {}, x.where); }
Value tanh(At x) { return x.builder().add(kTanh, {x}, {}, x.where); }
Value erf(At x) { return x.builder().add(kErf, {x}, {}, x.where); }
Value cos(At x) { return x.builder().add(kCos, {x}, {}, x.where); }
Value abs(At x) { return x.builder().add(kAbs, {x}, {}, x.where); }
Value sigmoid(At x) { return x.builder().add(kSigmoid, {x}, {}, x.where); }
Value identity(Value x) { return x.builder().add(kIdentity, {x}); }
Value whole_batch(Value x) { return x.builder().add(kWholeBatch, {x}); }
Value stop_gradient(Value x) { return x.builder().add(kStopGradient, {x}); }
Value gradient(Value dy, std::string_view path) {
  return dy.builder().add(kGradient, {dy}, {std::string(path)});
}

Factors elementwise_factors(const OpCall& c, Linear linear, std::vector<int> linear_operands) {
  Factors out;
  out.linear = linear;
  out.linear_operands = std::move(linear_operands);
  const Shape& result = c.out(0).shape;
  for (int d = 0; d < result.ndim(); ++d)
    out.list.push_back({text("d", d), result[d], FactorKind::Pass});
  const auto aligned = [&](const Shape& shape) {
    Factors::Dims dims;
    for (int d = 0; d < shape.ndim(); ++d) {
      const int f = result.ndim() - shape.ndim() + d;
      dims.push_back(shape[d] == result[f] ? std::vector<int>{f} : std::vector<int>{});
    }
    return dims;
  };
  for (int i = 0; i < c.num_in(); ++i) out.ins.push_back(aligned(c.in(i).shape));
  for (int i = 0; i < c.num_out(); ++i) out.outs.push_back(aligned(c.out(i).shape));
  return out;
}

Value unbroadcast(Value dy, const Shape& shape) {
  const int lead = dy.ndim() - shape.ndim();
  std::vector<std::int64_t> dims;
  for (int i = 0; i < lead; ++i) dims.push_back(i);
  if (lead > 0) dy = sum(dy, dims, KeepDim::No);
  dims.clear();
  for (int i = 0; i < shape.ndim(); ++i) {
    if (dy.shape()[i] != shape[i]) dims.push_back(i);
  }
  return dims.empty() ? dy : sum(dy, dims, KeepDim::Yes);
}

}  // namespace tessera
