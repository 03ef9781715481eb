#pragma once
/// Counter-based random numbers: Philox-4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
/// easy as 1, 2, 3").
///
/// A number is a pure function of (key, logical index, step): masks, initial weights and data order
/// do not depend on how a tensor was cut, and no generator state needs to be saved.

#include <array>
#include <cstdint>

namespace tessera {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Ten rounds over counter words (index / 4 low, high, step low, high) with a 64-bit key: 4 x 32
/// random bits.
constexpr PhiloxBlock philox(std::uint64_t key, std::uint64_t block, std::uint64_t step) {
  PhiloxBlock c = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                   static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0],
                        p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return c;
}

/// The 32 random bits of one logical element.
constexpr std::uint32_t philox_bits(std::uint64_t key, std::uint64_t index, std::uint64_t step) {
  return philox(key, index / 4, step)[index % 4];
}

/// 32 bits to a number in [0, 1), a multiple of 2^-24: exact in f32, so every device compares the
/// same value.
constexpr float unit_float(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// A number in [0, n) from the first two words: floor(bits * n / 2^64), n < 2^62. Its bias is below
/// n / 2^64.
constexpr std::int64_t uniform_index(const PhiloxBlock& random, std::int64_t n) {
  const auto range = static_cast<std::uint64_t>(n);
  const std::uint64_t low = range & 0xFFFFFFFF, high = range >> 32;
  const std::uint64_t a = random[1], b = random[0];  // bits = a * 2^32 + b
  const std::uint64_t middle = a * low + ((b * low) >> 32);
  const std::uint64_t carry = b * high + (middle & 0xFFFFFFFF);
  return static_cast<std::int64_t>(a * high + (middle >> 32) + (carry >> 32));
}

}  // namespace tessera
