#pragma once
/// Elements of memory whose type is known at run time.

#include <cstdint>

#include "tessera/tensor/dtype.h"

namespace tessera {

/// Element `i` as a double, whatever the dtype.
double element(DType dtype, const void* data, std::int64_t i);

}  // namespace tessera
