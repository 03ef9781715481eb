#pragma once
/// A hash of short strings for tables in memory; it is written to no file.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tessera::tokenizer {

inline std::uint64_t quick_mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Eight bytes at a time, folded by a product of 128 bits.
inline std::uint64_t quick_hash(std::string_view bytes) {
  constexpr std::uint64_t kA = 0x9E3779B97F4A7C15, kB = 0xD6E8FEB86659FD93;
  std::uint64_t out = kA ^ bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    out = quick_mix(out ^ word, kB);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    if (left >= 4) {
      std::uint32_t low = 0, high = 0;
      std::memcpy(&low, at, 4);
      std::memcpy(&high, at + left - 4, 4);
      word = static_cast<std::uint64_t>(high) << 32 | low;
    } else {
      const auto byte = [&](std::size_t i) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i]));
      };
      word = byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16;
    }
    out = quick_mix(out ^ word, kA);
  }
  return quick_mix(out, kB);
}

}  // namespace tessera::tokenizer
