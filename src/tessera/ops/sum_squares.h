#pragma once
/// The square of a norm, in one pass.

#include "tessera/ir/builder.h"

namespace tessera {

/// Sum of x^2 over all elements: an f32 (f64) scalar, accumulated in f64 and in a fixed order. It
/// earns its entry by memory: the squares of a gradient are never stored.
Value sum_squares(Value x);

extern const OpDef kSumSquares;

}  // namespace tessera
