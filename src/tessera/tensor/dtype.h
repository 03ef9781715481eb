#pragma once
/// Element types.

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

/// Bool is one byte, 0 or 1.
enum class DType : std::uint8_t { F32, F64, BF16, F16, I32, I64, Bool };

constexpr int size_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::I64: return 8;
    case DType::F32:
    case DType::I32: return 4;
    case DType::BF16:
    case DType::F16: return 2;
    case DType::Bool: return 1;
  }
  return 0;
}

constexpr bool is_float(DType d) {
  return d == DType::F32 || d == DType::F64 || d == DType::BF16 || d == DType::F16;
}

constexpr bool is_16_bit(DType d) { return d == DType::BF16 || d == DType::F16; }

/// In which numbers of `d` are computed: f32 for the 16-bit floats, from which results are rounded;
/// else their own.
constexpr DType computed_in(DType d) { return is_16_bit(d) ? DType::F32 : d; }

/// "f32", "bf16", ...
std::string_view to_text(DType dtype);
/// Reads what to_text writes. Errors: any other name.
DType parse_dtype(std::string_view name);

/// The C++ type of an element as a DType.
template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::F32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::F64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return DType::I32;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return DType::I64;
  } else {
    static_assert(std::is_same_v<T, bool>);
    return DType::Bool;
  }
}

}  // namespace tessera
