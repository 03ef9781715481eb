/// Element by element, with broadcasting.

#include "tessera/ops/elementwise.h"
#include "tessera/base/error.h"
#include "tessera/hlo/op_call.h"
#include "tessera/ops/reduce.h"

namespace tessera::hlo {

namespace {

void write_binary(Writing& w) { w.out(w.code.binary(w.entry.word, w.in(0), w.in(1))); }
void write_unary(Writing& w) { w.out(w.code.unary(w.entry.word, w.in(0))); }
void write_compare(Writing& w) { w.out(w.code.compare(w.entry.word, w.in(0), w.in(1))); }
void write_same(Writing& w) { w.out(w.in(0)); }

/// Of integers: x / 0 is 0, and the least number / -1 is itself. StableHLO leaves both undefined.
void write_div(Writing& w) {
  const Value &a = w.in(0), &b = w.in(1);
  if (is_float(a.element())) return w.out(a / b);
  const Value by_zero = eq(b, 0.0), by_minus_one = eq(b, -1.0);
  const Value quotient = a / w.code.select(by_zero | by_minus_one, 1.0, b);
  const Value negated = w.code.select(by_minus_one, w.code.unary("negate", a), quotient);
  w.out(w.code.select(by_zero, 0.0, negated));
}

void write_erf(Writing& w) { w.out(w.code.erf(w.in(0))); }
void write_is_finite(Writing& w) { w.out(w.code.is_finite(w.in(0))); }
/// Between 16-bit floats and a number in f32 too.
void write_select(Writing& w) {
  const auto in = [&](int i) { return w.code.cast(w.in(i), w.result_element(0)); };
  w.out(w.code.select(w.in(0), in(1), in(2)));
}
void write_cast(Writing& w) { w.out(w.code.cast(w.in(0), w.result_element(0))); }

void write_constant(Writing& w) {
  w.out(w.code.constant(w.call.number("value"), w.result_element(0)));
}

void write_add_n(Writing& w) {
  Value total = w.in(0);
  for (int i = 1; i < w.num_in(); ++i) total = total + w.in(i);
  w.out(total);
}

constexpr Emission wide(const OpDef& op, void (*write)(Writing&), const char* word = "") {
  return {&op, write, word, Numbers::Wide};
}

constinit const Emission kElementwise[] = {
    wide(kAdd, write_binary, "add"),
    wide(kSub, write_binary, "subtract"),
    wide(kMul, write_binary, "multiply"),
    wide(kDiv, write_div),
    wide(kMaximum, write_binary, "maximum"),
    wide(kMinimum, write_binary, "minimum"),
    wide(kPower, write_binary, "power"),
    {&kLogicalAnd, write_binary, "and"},
    {&kLogicalOr, write_binary, "or"},
    {&kLogicalNot, write_unary, "not"},
    wide(kNegate, write_unary, "negate"),
    wide(kExp, write_unary, "exponential"),
    wide(kLog, write_unary, "log"),
    wide(kSqrt, write_unary, "sqrt"),
    wide(kRsqrt, write_unary, "rsqrt"),
    wide(kTanh, write_unary, "tanh"),
    wide(kCos, write_unary, "cosine"),
    wide(kAbs, write_unary, "abs"),
    wide(kSigmoid, write_unary, "logistic"),
    wide(kErf, write_erf),
    wide(kEqual, write_compare, "EQ"),
    wide(kNotEqual, write_compare, "NE"),
    wide(kLess, write_compare, "LT"),
    wide(kLessEqual, write_compare, "LE"),
    {&kIsFinite, write_is_finite},
    {&kSelect, write_select},
    {&kCast, write_cast},
    {&kIdentity, write_same},
    {&kWholeBatch, write_same},
    {&kStopGradient, write_same},
    {&kGradient, write_same},
    {&kConstant, write_constant},
    wide(kAddN, write_add_n),
};

}  // namespace

std::span<const Emission> elementwise_emissions() { return kElementwise; }

}  // namespace tessera::hlo
