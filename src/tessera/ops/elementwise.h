#pragma once
/// Elementwise ops: one result element from the operand elements that broadcast to it (aligned at
/// the last dim).

#include "tessera/ir/builder.h"

namespace tessera {

// Arithmetic: operands of one dtype (f32, f64, bf16, f16, i32, i64), or an f32 scalar beside 16-bit
// floats. These are computed in f32, and each result is rounded once.
Value operator+(At a, Value b);
Value operator-(At a, Value b);
Value operator*(At a, Value b);
/// Integers: rounded toward 0; x / 0 is 0 (ops/quotient.h).
Value operator/(At a, Value b);
Value operator-(At a);
Value maximum(At a, Value b);
Value minimum(At a, Value b);
// With a scalar constant of the value's dtype.
Value operator+(At a, double b);
Value operator-(At a, double b);
Value operator-(double a, At b);
Value operator*(At a, double b);
Value operator/(At a, double b);
Value operator/(double a, At b);

Value exp(At x);
Value log(At x);
Value sqrt(At x);
Value rsqrt(At x);
Value tanh(At x);
Value erf(At x);
Value cos(At x);
Value abs(At x);
Value sigmoid(At x);
/// x to the power y; x > 0.
Value power(At x, Value y);

// Activations.
Value relu(At x);
Value silu(At x);
enum class GeluForm { Erf, Tanh };
/// Source: Hendrycks and Gimpel 2016, arXiv 1606.08415; the tanh form is the one GPT-2 was trained
/// with.
Value gelu(At x, GeluForm form);

// Comparisons and logic: results are bool.
Value equal(At a, Value b);
Value not_equal(At a, Value b);
Value less(At a, Value b);
Value less_equal(At a, Value b);
Value logical_and(At a, Value b);
Value logical_or(At a, Value b);
Value logical_not(At a);
/// True where x is neither infinite nor NaN.
Value is_finite(At x);

/// `a` where `condition` (bool) holds, else `b`.
Value select(Value condition, Value a, Value b);
Value cast(Value x, DType dtype);
/// The same value under a name of its own: passes may pin it.
Value identity(Value x);
/// The same value [b, ...], of which what follows may mix rows: it sees the whole batch, where a
/// batch is run in micro-batches too (passes/preview.h). A loss that compares samples reads its
/// operands through it.
Value whole_batch(Value x);
/// The same value, as a constant: nothing that it is made of gets a gradient through it.
Value stop_gradient(Value x);

extern const OpDef kAdd, kSub, kMul, kDiv, kMaximum, kMinimum, kPower, kNegate, kExp, kLog, kSqrt,
    kRsqrt, kTanh, kErf, kCos, kAbs, kSigmoid, kRelu, kSilu, kSiluGrad, kGelu, kGeluGrad, kEqual,
    kNotEqual, kLess, kLessEqual, kLogicalAnd, kLogicalOr, kLogicalNot, kIsFinite, kSelect, kCast,
    kIdentity, kWholeBatch, kStopGradient, kGradient;

/// The rule of an elementwise op: dims aligned at the last one; sizes of 1 that are broadcast carry
/// no factor.
Factors elementwise_factors(const OpCall& call, Linear linear = Linear::None,
                            std::vector<int> linear_operands = {});

/// The gradient of broadcasting: sums `dy` over the dims along which a value of `shape` was
/// repeated.
Value unbroadcast(Value dy, const Shape& shape);

/// The end of a parameter's gradient: an identity named grad(path), where it is finished.
Value gradient(Value dy, std::string_view path);

}  // namespace tessera
