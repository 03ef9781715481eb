#pragma once
/// Elements of memory whose type is known at run time.

#include <cstdint>

#include "tessera/tensor/dtype.h"

namespace tessera {

/// Element `i` as a double, whatever the dtype.
double element(DType dtype, const void* data, std::int64_t i);
/// Rounded to nearest, ties to even, to 16 bits by way of f32; what is too large for a 16-bit float
/// becomes infinity.
void set_element(DType dtype, void* data, std::int64_t i, double value);

}  // namespace tessera
