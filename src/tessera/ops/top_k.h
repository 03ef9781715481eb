#pragma once
/// The largest elements of rows, and of those that are alike.

#include "tessera/ir/builder.h"

namespace tessera {

struct TopKResult {
  Value values, ids;  // x's shape with a last dim of k; ids are i32
};
/// The k largest elements of each row along the last dim, the largest first, and their places. Of
/// equal elements the one at the lower place is first; a NaN counts as the largest, as in max. The
/// last dim must be whole on a rank. The gradient flows from the values.
/// Errors: x is bool; k is not between 1 and the last dim's size.
TopKResult top_k(Value x, std::int64_t k, Where where = Where::here());

/// The place of the largest element along `dim` (negative counts from the end), i32 of the shape
/// without it: the lowest of those that tie, that of a NaN if there is one.
Value arg_max(Value x, int dim, Where where = Where::here());

/// ids [..., t, k] (i32), of which in each [t, k] at most `capacity` of equal ones stay: those of the
/// largest keys [..., t, k], and of equal keys the first; the others become -1, as negative ids do.
/// t and k must be whole on a rank. No gradient. Errors: keys of another shape, or no floats; a
/// negative capacity.
Value within_capacity(Value ids, Value keys, std::int64_t capacity, Where where = Where::here());

/// True where the element `a` at place i stands before `b` at place j in the result of top_k.
template <typename T>
bool precedes(T a, std::int64_t i, T b, std::int64_t j) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan != b_nan) return a_nan;
  return a > b || (!(a < b) && i < j);
}

extern const OpDef kTopK, kWithinCapacity;

}  // namespace tessera
