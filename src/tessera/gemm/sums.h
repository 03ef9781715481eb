#pragma once
/// Where the sums of a product go. Code for processors with AVX512-BF16; whoever calls it has asked
/// whether there is one.

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#include <cstdint>

#include "tessera/gemm/gemm_shape.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

constexpr std::int64_t kLanes = 16;  // f32 of a vector

/// Where sums of a part of the result lie, and where they go once they are complete and rounded.
struct Sums {
  float* at;
  std::int64_t row;
  bool accumulate;          // onto those that lie there
  Bf16* rounded = nullptr;  // null: they are not complete, or stay in f32
  std::int64_t rounded_row = 0;

  Sums part(std::int64_t i, std::int64_t j) const {
    return {at + i * row + j, row, accumulate,
            rounded == nullptr ? nullptr : rounded + i * rounded_row + j, rounded_row};
  }
};

TESSERA_TILES inline void round_to(__m512 sums, Bf16* to, __mmask16 lanes = 0xFFFF) {
  _mm256_mask_storeu_epi16(to, lanes, __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(sums)));
}

/// Rounds `n` sums. `from` has room for whole vectors.
TESSERA_TILES inline void round_row(const float* from, Bf16* to, std::int64_t n) {
  for (; n > 0; n -= kLanes, from += kLanes, to += kLanes)
    round_to(_mm512_loadu_ps(from), to,
             static_cast<__mmask16>(n >= kLanes ? 0xFFFF : (1 << n) - 1));
}

}  // namespace tessera::cpu

#endif
