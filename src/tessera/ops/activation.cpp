#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/elementwise/from_scalar.h"

namespace tessera {

namespace {

constexpr double kHalfRoot = 0.70710678118654752;          // 1 / sqrt(2)
constexpr double kRootTwoOverPi = 0.79788456080286536;     // sqrt(2 / pi)
constexpr double kInverseRootTwoPi = 0.39894228040143268;  // 1 / sqrt(2 pi)
constexpr double kCubic = 0.044715;                        // of the tanh form
constexpr double kFar = 40;

template <typename T>
T sigmoid_of(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

struct Relu {
  // A NaN stays one: it must not be hidden from the check of the loss.
  template <typename T>
  T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Silu {
  template <typename T>
  T operator()(T x) const {
    return x * sigmoid_of(x);
  }
};
struct SiluSlope {
  template <typename T>
  T operator()(T x) const {
    const T s = sigmoid_of(x);
    return s * (T(1) + x * (T(1) - s));
  }
};
struct GeluErf {
  template <typename T>
  T operator()(T x) const {
    return T(0.5) * x * (T(1) + std::erf(x * T(kHalfRoot)));
  }
};
/// x, at most kFar away from 0: the slopes of gelu are constant beyond, where the formulas would
/// multiply infinity by 0.
template <typename T>
T within_formulas(T x) {
  return x < T(-kFar) ? T(-kFar) : x > T(kFar) ? T(kFar) : x;
}
struct GeluErfSlope {
  template <typename T>
  T operator()(T x) const {
    x = within_formulas(x);
    return T(0.5) * (T(1) + std::erf(x * T(kHalfRoot))) +
           x * T(kInverseRootTwoPi) * std::exp(T(-0.5) * x * x);
  }
};
struct GeluTanh {
  template <typename T>
  T operator()(T x) const {
    return T(0.5) * x * (T(1) + std::tanh(T(kRootTwoOverPi) * (x + T(kCubic) * x * x * x)));
  }
};
struct GeluTanhSlope {
  template <typename T>
  T operator()(T x) const {
    x = within_formulas(x);
    const T t = std::tanh(T(kRootTwoOverPi) * (x + T(kCubic) * x * x * x));
    return T(0.5) * (T(1) + t) +
           T(0.5) * x * (T(1) - t * t) * T(kRootTwoOverPi) * (T(1) + T(3 * kCubic) * x * x);
  }
};

template <typename F, typename T>
void map(RefCall& c) {
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) y[i] = F{}(x[i]);
}

/// dx = slope(x) * dy
template <typename F, typename T>
void map_grad(RefCall& c) {
  const T *x = c.in<T>(0), *dy = c.in<T>(1);
  T* dx = c.out<T>(0);
  for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) dx[i] = F{}(x[i]) * dy[i];
}

template <typename T>
void gelu_reference(RefCall& c) {
  c.call.flag("tanh") ? map<GeluTanh, T>(c) : map<GeluErf, T>(c);
}

template <typename T>
void gelu_grad_reference(RefCall& c) {
  c.call.flag("tanh") ? map_grad<GeluTanhSlope, T>(c) : map_grad<GeluErfSlope, T>(c);
}

TensorTypes float_type(const OpCall& c) {
  require(is_float(c.in(0).dtype), c.op().name, ": needs floats, x is ", c.in(0),
          "; cast it first");
  return {c.in(0)};
}

TensorTypes grad_type(const OpCall& c) {
  require(c.in(0) == c.in(1), c.op().name, ": x is ", c.in(0), ", dy is ", c.in(1),
          "; they must be of one type");
  return float_type(c);
}

Factors linear_in_dy(const OpCall& c) { return elementwise_factors(c, Linear::Each, {1}); }

double ten_per_element(const OpCall& c) { return 10.0 * static_cast<double>(c.out(0).numel()); }

/// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
Value bend(Value x) { return tanh((x + x * x * x * kCubic) * kRootTwoOverPi); }

void expand_relu(ExpandCall& e) {
  const Value x = e.in(0), zero = x.builder().constant(0, x.dtype());
  e.out(0) = select(less(x, zero), zero, x);
}

void expand_silu(ExpandCall& e) { e.out(0) = e.in(0) * sigmoid(e.in(0)); }

void expand_silu_grad(ExpandCall& e) {
  const Value x = e.in(0), s = sigmoid(x);
  e.out(0) = s * (x * (1.0 - s) + 1.0) * e.in(1);
}

void expand_gelu(ExpandCall& e) {
  const Value x = e.in(0);
  e.out(0) = x * 0.5 * ((e.call.flag("tanh") ? bend(x) : erf(x * kHalfRoot)) + 1.0);
}

void expand_gelu_grad(ExpandCall& e) {
  Builder& builder = e.in(0).builder();
  const auto far = [&](double at) { return builder.constant(at, e.in(0).dtype()); };
  const Value x = minimum(maximum(e.in(0), far(-kFar)), far(kFar));
  if (e.call.flag("tanh")) {
    const Value t = bend(x), inner = (x * x * (3 * kCubic) + 1.0) * kRootTwoOverPi;
    e.out(0) = ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner) * e.in(1);
  } else {
    const Value density = exp(x * x * -0.5) * kInverseRootTwoPi;
    e.out(0) = ((erf(x * kHalfRoot) + 1.0) * 0.5 + x * density) * e.in(1);
  }
}

constexpr OpDef activation(std::string_view name, std::string_view doc, Reference reference,
                           void (*expand)(ExpandCall&), void (*grad)(GradCall&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.infer = float_type;
  op.factors = elementwise::not_linear;
  op.expand = expand;
  op.grad = grad;
  op.flops = ten_per_element;
  op.reference = reference;
  op.in_place[0] = {0, 0};
  op.traits.elementwise = true;
  op.zero_where = 0b1;
  return op;
}

constexpr OpDef activation_grad(std::string_view name, std::string_view doc, Reference reference,
                                void (*expand)(ExpandCall&)) {
  OpDef op = activation(name, doc, reference, expand, nullptr);
  op.infer = grad_type;
  op.factors = linear_in_dy;
  op.in_place = {InPlace{0, 0}, InPlace{0, 1}};
  op.zero_where = 0b10;
  return op;
}

}  // namespace

// The slope at 0 is 0, and y > 0 exactly where x > 0: x is not kept.
constinit const OpDef kRelu = activation("relu", "max(x, 0)", {map<Relu, float>, map<Relu, double>},
                                         expand_relu, [](GradCall& g) -> void {
                                           const Value zero =
                                               g.out(0).builder().constant(0, g.out(0).dtype());
                                           g.din(0) = select(less(zero, g.out(0)), g.dout(0), zero);
                                         });

constinit const OpDef kSilu =
    activation("silu", "x * sigmoid(x)", {map<Silu, float>, map<Silu, double>}, expand_silu,
               [](GradCall& g) -> void {
                 g.din(0) = g.dout(0).builder().add(kSiluGrad, {g.in(0), g.dout(0)});
               });
constinit const OpDef kSiluGrad =
    activation_grad("silu_grad", "(x, dy) -> dx of silu",
                    {map_grad<SiluSlope, float>, map_grad<SiluSlope, double>}, expand_silu_grad);

constinit const OpDef kGelu = [] {
  OpDef op = activation(
      "gelu", "x times the normal distribution's cumulative probability of x, or its tanh form",
      {gelu_reference<float>, gelu_reference<double>}, expand_gelu, [](GradCall& g) -> void {
        g.din(0) = g.dout(0).builder().add(kGeluGrad, {g.in(0), g.dout(0)}, {g.call.flag("tanh")});
      });
  op.attrs = {{"tanh", AttrKind::Bool}};
  return op;
}();
constinit const OpDef kGeluGrad = [] {
  OpDef op =
      activation_grad("gelu_grad", "(x, dy) -> dx of gelu",
                      {gelu_grad_reference<float>, gelu_grad_reference<double>}, expand_gelu_grad);
  op.attrs = {{"tanh", AttrKind::Bool}};
  return op;
}();

Value relu(At x) { return x.builder().add(kRelu, {x}, {}, x.where); }
Value silu(At x) { return x.builder().add(kSilu, {x}, {}, x.where); }
Value gelu(At x, GeluForm form) {
  return x.builder().add(kGelu, {x}, {form == GeluForm::Tanh}, x.where);
}

}  // namespace tessera
