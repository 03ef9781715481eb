/// Activations and their slopes.

#include "tessera/hlo/op_call.h"
#include "tessera/ops/elementwise.h"

namespace tessera::hlo {

namespace {

constexpr double kRootOfHalf = 0.70710678118654752, kRootOfTwoOverPi = 0.79788456080286536,
                 kOneOverRootOfTwoPi = 0.39894228040143268, kCube = 0.044715;

/// By a select, as a NaN must stay one.
void write_relu(Writing& w) { w.out(w.code.select(w.in(0) < 0.0, 0.0, w.in(0))); }

void write_silu(Writing& w) { w.out(w.in(0) * w.code.unary("logistic", w.in(0))); }

void write_silu_grad(Writing& w) {
  const Value &x = w.in(0), s = w.code.unary("logistic", x);
  w.out(s * (x * (1.0 - s) + 1.0) * w.in(1));
}

/// tanh(sqrt(2 / pi) (x + 0.044715 x^3))
Value bend(const Value& x) {
  return x.code().unary("tanh", (x + x * x * x * kCube) * kRootOfTwoOverPi);
}

void write_gelu(Writing& w) {
  const Value& x = w.in(0);
  const Value bent = w.call.flag("tanh") ? bend(x) : w.code.erf(x * kRootOfHalf);
  w.out(x * 0.5 * (bent + 1.0));
}

/// Beyond 40 the slope is constant, where the formulas would multiply infinity by 0.
void write_gelu_grad(Writing& w) {
  const Value x = w.code.binary("minimum", w.code.binary("maximum", w.in(0), -40.0), 40.0);
  if (w.call.flag("tanh")) {
    const Value t = bend(x), inner = (x * x * (3 * kCube) + 1.0) * kRootOfTwoOverPi;
    return w.out(((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner) * w.in(1));
  }
  const Value density = w.code.exp(x * x * -0.5) * kOneOverRootOfTwoPi;
  w.out(((w.code.erf(x * kRootOfHalf) + 1.0) * 0.5 + x * density) * w.in(1));
}

constinit const Emission kActivations[] = {
    {&kRelu, write_relu, "", Numbers::Wide},
    {&kSilu, write_silu, "", Numbers::Wide, Source::Formula},
    {&kSiluGrad, write_silu_grad, "", Numbers::Wide, Source::Formula},
    {&kGelu, write_gelu, "", Numbers::Wide, Source::Formula},
    {&kGeluGrad, write_gelu_grad, "", Numbers::Wide, Source::Formula},
};

}  // namespace

std::span<const Emission> activation_emissions() { return kActivations; }

}  // namespace tessera::hlo
