#pragma once
/// Sums of several ranks' memory, in rank order.

#include <cstdint>
#include <span>

#include "tessera/tensor/dtype.h"
#include "tessera/tensor/sharding.h"

namespace tessera::backend {

/// outs[k][i] = ins[0][i] + ins[1][i] + ..., from the left, for `count` elements that begin
/// `in_at` and `out_at` elements into the memory. An out may be one of the ins. Integers wrap.
/// 16-bit floats are added up in f32, and the sum is rounded once.
void reduce(DType dtype, Monoid monoid, std::span<const void* const> ins, std::int64_t in_at,
            std::span<void* const> outs, std::int64_t out_at, std::int64_t count);

}  // namespace tessera::backend
