#pragma once
/// Ops that move elements without computing.

#include "tessera/ir/builder.h"

namespace tessera {

/// The same elements in row-major order; one size may be -1. Factors: dims that split or merge
/// share factors.
Value reshape(Value x, Shape shape, Where where = Where::here());
/// The same, of small values: where ranks hold parts of which none is a part of the result, they
/// gather them, and reshape is refused. No size is -1.
Value regroup(Value x, Shape shape, Where where = Where::here());
/// True of the node that regroup made.
bool gathers_parts(const Node& node);
Value transpose(Value x, std::vector<std::int64_t> permutation, Where where = Where::here());
/// Elements [start, start + size) of `dim`.
Value slice(Value x, int dim, std::int64_t start, std::int64_t size, Where where = Where::here());
/// The `size` elements start, start + step, start + 2 step, ... of `dim`; step >= 1. A view, as
/// slice is. A rank that has a part of `dim` gets the others first. Its gradient lies between
/// zeros.
Value strided_slice(Value x, int dim, std::int64_t start, std::int64_t size, std::int64_t step,
                    Where where = Where::here());
/// As slice, at a start known only at run time: an i32 scalar, clamped so that the window fits.
Value dynamic_slice(Value x, int dim, Value start, std::int64_t size, Where where = Where::here());
/// Joined along `dim`.
Value concat(const std::vector<Value>& values, int dim, Where where = Where::here());
/// Zeros around [start, start + x's size) of a dim of `size`: the gradient of slice.
Value pad(Value x, int dim, std::int64_t start, std::int64_t size, Where where = Where::here());

extern const OpDef kReshape, kTranspose, kSlice, kDynamicSlice, kDynamicPad, kConcat, kPad;

}  // namespace tessera
