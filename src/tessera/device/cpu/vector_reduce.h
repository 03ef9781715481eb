#pragma once
/// What the inner functions of reductions are asked to fold, and with what.

#include <cstddef>
#include <cstdint>

#include "tessera/tensor/dtype.h"

namespace tessera::cpu {

enum class Fold : std::uint8_t { Sum, Max, Min, SumSquares };

/// Floats of f32, bf16 or f16 in memory.
struct Numbers {
  const void* at;
  DType dtype;

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(at);
  }
  Numbers from(std::int64_t element) const {
    return {as<std::byte>() + element * size_of(dtype), dtype};
  }
};

}  // namespace tessera::cpu
