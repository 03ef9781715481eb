#pragma once
/// Pairs of bf16, each in the 32 bits of a lane, as products by dot products read them. Code for
/// processors with AVX512-BF16; whoever calls it has asked whether there is one.

#if defined(__x86_64__) && defined(__linux__)

#include <algorithm>
#include <cstdint>

#include "tessera/gemm/gemm_shape.h"
#include "tessera/gemm/intrinsics.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

inline __mmask16 first_of_16(std::int64_t n) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(n, 0, 16)) - 1);
}

/// 16 neighbours as the lower halves of 32 bits, of those in `lanes`.
TESSERA_TILES inline __m512i low_halves(const Bf16* from, __mmask16 lanes) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from));
}
TESSERA_TILES inline __m512i low_halves(const Bf16* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
TESSERA_TILES inline __m512i pairs_of(__m512i even, __m512i odd) {
  return _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
}

}  // namespace tessera::cpu

#endif
