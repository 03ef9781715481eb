#pragma once
/// Floats of one dtype as those of another.

#include <cstddef>
#include <span>

#include "tessera/tensor/dtype.h"

namespace tessera {

/// As many elements of each: f32, bf16 or f16. Rounds to nearest, ties to even.
void convert_floats(DType from, std::span<const std::byte> values, DType to,
                    std::span<std::byte> out);

}  // namespace tessera
