#pragma once
/// 16-bit floats as bits: bf16 is the upper half of an f32, f16 is IEEE's. All cases are computed
/// and one is selected, so that compilers vectorize loops of these.

#include <bit>
#include <cstdint>

namespace tessera {

/// `a` if `is_a`, else `b`, without a branch.
inline std::uint32_t pick_bits(bool is_a, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = 0 - static_cast<std::uint32_t>(is_a);
  return (a & mask) | (b & ~mask);
}

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Round to nearest, ties to even; NaN stays NaN.
inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), kept = bits >> 16;
  const std::uint32_t rounded = (bits + 0x7FFF + (kept & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? kept | 0x40 : rounded);
}

inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFF) << 13;
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(bits & 1023)) * 0x1p-24f;
  const std::uint32_t finite = pick_bits(
      magnitude < 1U << 23, std::bit_cast<std::uint32_t>(subnormal), magnitude + (112U << 23));
  return std::bit_cast<float>(sign |
                              pick_bits(magnitude >= 31U << 23, magnitude | 0x7F800000, finite));
}

/// Round to nearest, ties to even; overflow becomes infinity.
inline std::uint16_t to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  // Subnormal: adding 0.5 aligns the last kept bit with the last bit of the sum.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3F000000;
  const std::uint32_t normal = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  const std::uint32_t finite = pick_bits(magnitude < 0x38800000, subnormal, normal);
  const std::uint32_t infinite = pick_bits(magnitude > 0x7F800000, 0x7E00, 0x7C00);
  return static_cast<std::uint16_t>(sign | pick_bits(magnitude >= 0x477FF000, infinite, finite));
}

}  // namespace tessera
