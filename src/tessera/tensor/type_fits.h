#pragma once
/// Types whose sizes are exact.

#include "tessera/tensor/type.h"

namespace tessera {

/// True where no size is negative and bytes are at most kMaxSize, even with those dims that are 0
/// left out: whatever is computed of the sizes is exact. Builders and parsers let no other type in.
bool fits(const TensorType& type);

}  // namespace tessera
