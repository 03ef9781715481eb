#pragma once
/// Rows of 16-bit floats to f32 and back.

#include <cstdint>

#include "tessera/device/cpu/vector_tiles.h"
#include "tessera/tensor/dtype.h"

namespace tessera::cpu {

/// `n` neighbours of `dtype`, BF16 or F16.
void widen(DType dtype, const void* from, float* to, std::int64_t n);
/// Rounded to nearest, ties to even.
void narrow(DType dtype, const float* from, void* to, std::int64_t n);

/// The same as functions of tiles.
TileFunction widen_tile(DType dtype);
TileFunction narrow_tile(DType dtype);

/// to += from, `n` neighbours.
void accumulate(const float* from, float* to, std::int64_t n);

}  // namespace tessera::cpu
