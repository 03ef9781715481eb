#pragma once
/// Turning 16 x 16 numbers of 32 bits, in registers.

#if defined(__x86_64__) && defined(__linux__)

#include <cstdint>

#include "tessera/gemm/intrinsics.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

/// Number j of r[i] becomes number i of the vector at `to` + j * `step` (bytes; 64-byte aligned).
TESSERA_TILES inline __attribute__((always_inline)) void transpose(__m512i r[16], char* to,
                                                                   std::int64_t step) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(to + i * step, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(to + (i + 4) * step, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_store_si512(to + (i + 8) * step, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    _mm512_store_si512(to + (i + 12) * step, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

}  // namespace tessera::cpu

#endif
