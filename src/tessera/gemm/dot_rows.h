#pragma once
/// The inner loop of products by dot products of pairs (dot_gemm.h): kDotRows rows of the result,
/// one or two vectors wide.

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "tessera/gemm/lines_ahead.h"
#include "tessera/gemm/sums.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

/// Two vectors of columns each leave half of the registers for operands, and sixteen sums hide how
/// long each takes.
constexpr std::int64_t kDotRows = 8;

/// Where kDotRows rows of A lie: bytes from one to the next, and from a pair to the next.
struct DotOperand {
  const char* at;
  std::int64_t row, pair;
};

/// Whether rows of A lie in memory as they came, pairs side by side, or packed (dot_pack.h), rows
/// side by side.
enum class RowsOfA { InPlace, Packed };

/// What later blocks read, prefetched while others are computed.
struct DotsAhead {
  LinesAhead b, a, sums;
  void fetch() { b.fetch(), a.fetch(), sums.fetch(); }
};

/// Pairs from one call of fetch to the next.
constexpr std::int64_t kPairsAtOnce = 32;
constexpr std::int64_t fetches(std::int64_t pairs) {
  return (pairs + kPairsAtOnce - 1) / kPairsAtOnce;
}

/// `b`: a panel of cols * 16 columns.
template <RowsOfA rows, int cols>
TESSERA_TILES void dot_rows(const DotOperand& a, const char* b, std::int64_t pairs, const Sums& c,
                            DotsAhead& ahead) {
  constexpr std::int64_t kPair = 4;  // bytes
  const std::int64_t row = rows == RowsOfA::Packed ? kPair : a.row,
                     next = rows == RowsOfA::Packed ? a.pair : kPair;
  const char* at = a.at;
  __m512 sums[kDotRows * cols];
#pragma GCC unroll 16
  for (int i = 0; i < kDotRows * cols; ++i)
    sums[i] = c.accumulate ? _mm512_loadu_ps(c.at + i / cols * c.row + i % cols * kLanes)
                           : _mm512_setzero_ps();
  for (std::int64_t begin = 0; begin < pairs; begin += kPairsAtOnce) {
    ahead.fetch();
    const std::int64_t end = begin + kPairsAtOnce < pairs ? begin + kPairsAtOnce : pairs;
#pragma GCC unroll 2
    for (std::int64_t pair = begin; pair < end; ++pair, at += next, b += cols * kLanes * kPair) {
      __m512bh right[cols];
#pragma GCC unroll 2
      for (int j = 0; j < cols; ++j)
        right[j] = __builtin_bit_cast(__m512bh, _mm512_load_si512(b + j * kLanes * kPair));
#pragma GCC unroll 8
      for (int i = 0; i < kDotRows; ++i) {
        std::int32_t two = 0;
        std::memcpy(&two, at + i * row, sizeof(two));
        const auto left = __builtin_bit_cast(__m512bh, _mm512_set1_epi32(two));
#pragma GCC unroll 2
        for (int j = 0; j < cols; ++j)
          sums[i * cols + j] = _mm512_dpbf16_ps(sums[i * cols + j], left, right[j]);
      }
    }
  }
  if (c.rounded == nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kDotRows * cols; ++i)
      _mm512_storeu_ps(c.at + i / cols * c.row + i % cols * kLanes, sums[i]);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kDotRows * cols; ++i)
      round_to(sums[i], c.rounded + i / cols * c.rounded_row + i % cols * kLanes);
  }
}

}  // namespace tessera::cpu

#endif
