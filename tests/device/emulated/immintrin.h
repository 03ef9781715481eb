#pragma once
/// Instructions of AVX-512, AVX512-BF16 and AMX as plain loops, in place of the compiler's header:
/// products on tiles (tile_gemm.h) are then compiled for every processor, and tested on it. Only
/// what they use is here, by the names of Intel's intrinsics.
///
/// Source: Intel, "64 and IA-32 Architectures Software Developer's Manual", volume 2.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

struct __m512 {
  float at[16];
};
struct __m512i {
  std::uint32_t at[16];
};
struct __m512bh {
  std::uint16_t at[32];
};
struct __m256i {
  std::uint16_t at[16];
};
struct __m256bh {
  std::uint16_t at[16];
};
using __mmask16 = std::uint16_t;
using __mmask32 = std::uint32_t;

namespace emulated {

/// Units of bf16 take what is below the smallest normal number for zero.
inline float flush(float x) { return std::abs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }
/// Of the lower half of `bits`.
inline float widen(std::uint32_t bits) { return flush(std::bit_cast<float>(bits << 16)); }
/// a b + c, rounded once: a product of bf16 has 16 bits, and f64 adds to it what f32 holds.
inline float fma(std::uint32_t a, std::uint32_t b, float c) {
  return flush(static_cast<float>(double{widen(a)} * double{widen(b)} + double{flush(c)}));
}

/// Of the calling thread, as on the processor; `configured` where there are tiles.
struct Tile {
  std::uint32_t at[16][16];
};
inline thread_local Tile tiles[8];
inline thread_local bool configured = false;

template <typename V, typename F>
V each(const F& f) {
  V out;
  for (int i = 0; i < 16; ++i) out.at[i] = static_cast<decltype(+out.at[0])>(f(i));
  return out;
}
template <typename V>
V load(const void* from) {
  V out;
  std::memcpy(&out, from, sizeof(V));
  return out;
}
/// A 64-byte access that the processor refuses elsewhere.
inline const void* aligned(const void* at) {
  if (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) __builtin_trap();
  return at;
}

}  // namespace emulated

inline __m512 _mm512_setzero_ps() { return {}; }
inline __m512i _mm512_set1_epi32(int x) {
  return emulated::each<__m512i>([&](int) { return static_cast<std::uint32_t>(x); });
}
inline __m512i _mm512_and_si512(__m512i a, __m512i b) {
  return emulated::each<__m512i>([&](int i) { return a.at[i] & b.at[i]; });
}
inline __m512i _mm512_or_si512(__m512i a, __m512i b) {
  return emulated::each<__m512i>([&](int i) { return a.at[i] | b.at[i]; });
}
inline __m512i _mm512_add_epi32(__m512i a, __m512i b) {
  return emulated::each<__m512i>([&](int i) { return a.at[i] + b.at[i]; });
}
inline __m512i _mm512_srli_epi32(__m512i a, unsigned n) {
  return emulated::each<__m512i>([&](int i) { return a.at[i] >> n; });
}
inline __m512i _mm512_slli_epi32(__m512i a, unsigned n) {
  return emulated::each<__m512i>([&](int i) { return a.at[i] << n; });
}
inline __m512 _mm512_sub_ps(__m512 a, __m512 b) {
  return emulated::each<__m512>([&](int i) { return a.at[i] - b.at[i]; });
}
inline __m512 _mm512_mul_ps(__m512 a, __m512 b) {
  return emulated::each<__m512>([&](int i) { return a.at[i] * b.at[i]; });
}
inline __m512 _mm512_set1_ps(float x) {
  return emulated::each<__m512>([&](int) { return x; });
}
inline __m512i _mm512_castps_si512(__m512 a) { return std::bit_cast<__m512i>(a); }
inline __m512 _mm512_castsi512_ps(__m512i a) { return std::bit_cast<__m512>(a); }

inline __m512 _mm512_loadu_ps(const void* from) { return emulated::load<__m512>(from); }
inline void _mm512_storeu_ps(void* to, __m512 a) { std::memcpy(to, &a, sizeof(a)); }
inline __m512i _mm512_load_si512(const void* from) {
  return emulated::load<__m512i>(emulated::aligned(from));
}
inline __m512i _mm512_loadu_si512(const void* from) { return emulated::load<__m512i>(from); }
inline __m512i _mm512_maskz_loadu_epi16(__mmask32 lanes, const void* from) {
  const auto at = [&](int i) -> std::uint32_t {
    return (lanes >> i & 1) != 0 ? static_cast<const std::uint16_t*>(from)[i] : 0;
  };
  return emulated::each<__m512i>([&](int i) { return at(2 * i) | at(2 * i + 1) << 16; });
}
inline void _mm512_store_si512(void* to, __m512i a) {
  emulated::aligned(to);
  std::memcpy(to, &a, sizeof(a));
}
inline __m256i _mm256_loadu_si256(const __m256i* from) { return emulated::load<__m256i>(from); }
inline __m512 _mm512_maskz_loadu_ps(__mmask16 lanes, const void* from) {
  return emulated::each<__m512>(
      [&](int i) { return (lanes >> i & 1) != 0 ? static_cast<const float*>(from)[i] : 0.0F; });
}
inline __m256i _mm256_maskz_loadu_epi16(__mmask16 lanes, const void* from) {
  return emulated::each<__m256i>([&](int i) {
    return (lanes >> i & 1) != 0 ? static_cast<const std::uint16_t*>(from)[i] : 0;
  });
}
inline void _mm256_mask_storeu_epi16(void* to, __mmask16 lanes, __m256i a) {
  for (int i = 0; i < 16; ++i) {
    if ((lanes >> i & 1) != 0) static_cast<std::uint16_t*>(to)[i] = a.at[i];
  }
}
inline __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return emulated::each<__m512i>([&](int i) { return a.at[i]; });
}

// Within each 128 bits: numbers i of a and b in turn.
inline __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) {
  return emulated::each<__m512i>(
      [&](int i) { return (i % 2 == 0 ? a : b).at[i / 4 * 4 + i % 4 / 2]; });
}
inline __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) {
  return emulated::each<__m512i>(
      [&](int i) { return (i % 2 == 0 ? a : b).at[i / 4 * 4 + 2 + i % 4 / 2]; });
}
inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
  return emulated::each<__m512i>([&](int i) { return (i % 4 < 2 ? a : b).at[i / 4 * 4 + i % 2]; });
}
inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
  return emulated::each<__m512i>(
      [&](int i) { return (i % 4 < 2 ? a : b).at[i / 4 * 4 + 2 + i % 2]; });
}
/// 128 bits at a time: two of a, then two of b, each named by two bits.
inline __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, int which) {
  return emulated::each<__m512i>(
      [&](int i) { return (i < 8 ? a : b).at[(which >> (i / 4 * 2) & 3) * 4 + i % 4]; });
}

inline __m256bh _mm512_cvtneps_pbh(__m512 a) {
  return emulated::each<__m256bh>([&](int i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(emulated::flush(a.at[i]));
    return std::isnan(a.at[i]) ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  });
}
inline __m512 _mm512_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b) {
  return emulated::each<__m512>([&](int i) {
    const float odd = emulated::fma(a.at[2 * i + 1], b.at[2 * i + 1], sum.at[i]);
    return emulated::fma(a.at[2 * i], b.at[2 * i], odd);
  });
}

inline void _tile_loadconfig(const void* config) {
  struct {
    std::uint8_t palette, start_row, reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t rows[16];
  } read;
  std::memcpy(&read, config, sizeof(read));
  for (int i = 0; i < 8; ++i) {
    if (read.palette != 1 || read.row_bytes[i] != 64 || read.rows[i] != 16) __builtin_trap();
  }
  emulated::configured = true;
}
inline void _tile_release() {
  emulated::configured = false;
  std::memset(emulated::tiles, 0xFF, sizeof(emulated::tiles));
}
namespace emulated {
inline Tile& tile(int i) {
  if (!configured) __builtin_trap();
  return tiles[i];
}
}  // namespace emulated
inline void _tile_zero(int i) { emulated::tile(i) = {}; }
inline void _tile_loadd(int i, const void* from, std::size_t stride) {
  for (int row = 0; row < 16; ++row)
    std::memcpy(emulated::tile(i).at[row], static_cast<const char*>(from) + row * stride, 64);
}
inline void _tile_stored(int i, void* to, std::size_t stride) {
  for (int row = 0; row < 16; ++row)
    std::memcpy(static_cast<char*>(to) + row * stride, emulated::tile(i).at[row], 64);
}
/// The even and the odd terms of a tile are added up by themselves, then both to the result.
inline void _tile_dpbf16ps(int result, int left, int right) {
  emulated::Tile &c = emulated::tile(result), &a = emulated::tile(left), &b = emulated::tile(right);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < 16; ++k) {
        const std::uint32_t x = a.at[m][k], y = b.at[k][n];
        even = emulated::fma(x, y, even);
        odd = emulated::fma(x >> 16, y >> 16, odd);
      }
      const float before = emulated::flush(std::bit_cast<float>(c.at[m][n]));
      const float sum = emulated::flush(before + emulated::flush(even + odd));
      c.at[m][n] = std::bit_cast<std::uint32_t>(sum);
    }
  }
}
