#pragma once
/// Element types.

#include <cstdint>
#include <string_view>

namespace tessera {

enum class DType : std::uint8_t { F32, F64, BF16, F16, I32, I64, Bool };  // Bool is one byte, 0 or 1

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

/// "f32", "bf16", ...
std::string_view to_text(DType dtype);
/// Reads what to_text writes. Errors: any other name.
DType parse_dtype(std::string_view name);

/// The C++ type of an element as a DType.
template <typename T>
constexpr DType dtype_of();
template <> constexpr DType dtype_of<float>() { return DType::F32; }
template <> constexpr DType dtype_of<double>() { return DType::F64; }
template <> constexpr DType dtype_of<std::int32_t>() { return DType::I32; }
template <> constexpr DType dtype_of<std::int64_t>() { return DType::I64; }
template <> constexpr DType dtype_of<bool>() { return DType::Bool; }

}  // namespace tessera
