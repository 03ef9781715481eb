#pragma once
/// Reductions and broadcasting.

#include "tessera/ir/builder.h"

namespace tessera {

enum class KeepDim { No, Yes };  // whether a reduced dim stays, with size 1

/// Sum over `dims` (non-negative, ascending). Sums of f32 are accumulated in f32.
Value sum(At x, std::vector<std::int64_t> dims, KeepDim keep = KeepDim::No);
/// Sum over one dim; negative counts from the end.
Value sum(At x, int dim, KeepDim keep = KeepDim::No);
/// Sum over all dims: a scalar.
Value sum_all(At x);
Value max(At x, std::vector<std::int64_t> dims, KeepDim keep = KeepDim::No);
Value max(At x, int dim, KeepDim keep = KeepDim::No);
Value min(At x, std::vector<std::int64_t> dims, KeepDim keep = KeepDim::No);
Value min(At x, int dim, KeepDim keep = KeepDim::No);
/// Whether any, or each, of the elements is true: the max and the min of bools. Dims that are
/// reduced may be split, as in every reduction. Errors: x is not bool.
Value any(At x, std::vector<std::int64_t> dims, KeepDim keep = KeepDim::No);
Value all(At x, std::vector<std::int64_t> dims, KeepDim keep = KeepDim::No);
Value mean(At x, std::vector<std::int64_t> dims, KeepDim keep = KeepDim::No);
/// Repeats x (numpy's rules, aligned at the last dim) to `shape`.
Value broadcast_to(Value x, const Shape& shape);
/// The sum of many values of one type, as one node: joint-linear, so that partial sums meet before
/// they are finished.
Value add_n(const std::vector<Value>& values);

extern const OpDef kSum, kMax, kMin, kBroadcast, kAddN;

}  // namespace tessera
