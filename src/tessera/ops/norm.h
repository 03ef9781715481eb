#pragma once
/// Normalisations over the last dims: as many as the weight has, whose shape is theirs.
///
/// Each of these dims may be split, as any other: ranks then exchange the statistics of each row.
/// (A reshape that merges several would let only the first be split.)
///
/// Statistics are results, so that gradients need not compute them again.

#include "tessera/ir/builder.h"

namespace tessera {

struct LayerNormResult {
  Value y, mean, rstd;  // mean, rstd: x's shape with 1 for each dim that is normalised
};
/// (x - mean) / sqrt(var + eps) * weight + bias; `bias` may be empty (an invalid Value).
/// Shapes: x [..., d...]; weight, bias [d...]: [..., d] and [d] for one dim. Source: Ba et al.
/// 2016, arXiv 1607.06450.
LayerNormResult layer_norm(Value x, Value weight, Value bias, double eps = 1e-5,
                           Where where = Where::here());

struct RmsNormResult {
  Value y, rstd;
};
/// x / sqrt(mean(x^2) + eps) * weight. Shapes: x [..., d...]; weight [d...].
/// Source: Zhang and Sennrich 2019, arXiv 1910.07467.
RmsNormResult rms_norm(Value x, Value weight, double eps = 1e-5, Where where = Where::here());

// The gradients, which flow from y only:
// (dy, x, weight, mean, rstd) -> (dx, dweight[, dbias]); (dy, x, weight, rstd) -> (dx, dweight).
extern const OpDef kLayerNorm, kLayerNormGrad, kRmsNorm, kRmsNormGrad;

}  // namespace tessera
