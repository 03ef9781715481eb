#include "tessera/device/cpu/attention_dots.h"

#include <string_view>

#include "tessera/base/error.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cstring>

#include "tessera/gemm/dot_pairs.h"
#include "tessera/gemm/intrinsics.h"
#include "tessera/gemm/sums.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

namespace {

/// kRows x kVectors sums in registers.
template <int kRows, int kVectors>
TESSERA_TILES void dot_block(const DotProduct& p, std::int64_t row, std::int64_t col) {
  const std::uint16_t* a = p.a + row * p.a_row;
  const float* b = p.b + col;
  float* const c = p.c + row * p.ldc + col;
  __m512 sums[kRows * kVectors];
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i)
    sums[i] = p.accumulate ? _mm512_loadu_ps(c + i / kVectors * p.ldc + i % kVectors * 16)
                           : _mm512_setzero_ps();
  for (std::int64_t pair = 0; pair < p.pairs; ++pair, a += p.a_pair, b += p.ldb) {
    __m512bh columns[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      columns[j] = __builtin_bit_cast(__m512bh, _mm512_loadu_ps(b + 16 * j));
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      int two = 0;
      std::memcpy(&two, a + i * p.a_row, sizeof(two));
      const auto all = __builtin_bit_cast(__m512bh, _mm512_set1_epi32(two));
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j)
        sums[i * kVectors + j] = _mm512_dpbf16_ps(sums[i * kVectors + j], columns[j], all);
    }
  }
  const __m512 scale = _mm512_set1_ps(p.scale);
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i)
    _mm512_storeu_ps(c + i / kVectors * p.ldc + i % kVectors * 16, _mm512_mul_ps(sums[i], scale));
}

template <int kVectors>
TESSERA_TILES void dot_columns(const DotProduct& p, std::int64_t col) {
  constexpr int kRows = kVectors == 4 ? 6 : 8;
  std::int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) {
    p.ahead->fetch();
    dot_block<kRows, kVectors>(p, row, col);
  }
  for (; row + 4 <= p.rows; row += 4) dot_block<4, kVectors>(p, row, col);
  for (; row < p.rows; ++row) dot_block<1, kVectors>(p, row, col);
}

}  // namespace

TESSERA_TILES void multiply_dots(const DotProduct& p) {
  std::int64_t col = 0;
  for (; col + 64 <= p.cols; col += 64) dot_columns<4>(p, col);
  if (col + 48 <= p.cols) dot_columns<3>(p, col), col += 48;
  if (col + 32 <= p.cols) dot_columns<2>(p, col), col += 32;
  if (col + 16 <= p.cols) dot_columns<1>(p, col);
}

TESSERA_TILES void round_to_bf16(const float* from, std::int64_t n, std::uint16_t* to) {
  round_row(from, to, n);
}

TESSERA_TILES void pair_rows(const std::uint16_t* from, std::int64_t stride, std::int64_t rows,
                             std::int64_t cols, float* to, std::int64_t wide) {
  for (std::int64_t row = 0; row < rows; row += 2, from += 2 * stride, to += wide) {
    for (std::int64_t col = 0; col < wide; col += kLanes) {
      const __mmask16 lanes = first_of_16(cols - col), odd = row + 1 < rows ? lanes : __mmask16{0};
      const __m512i both =
          pairs_of(low_halves(from + col, lanes), low_halves(from + stride + col, odd));
      _mm512_storeu_ps(to + col, _mm512_castsi512_ps(both));
    }
  }
}

}  // namespace tessera::cpu

#else

namespace tessera::cpu {

namespace {
constexpr std::string_view kAbsent = "AVX512-BF16 on a processor without it";
}

void multiply_dots(const DotProduct&) { check(false, kAbsent); }
void round_to_bf16(const float*, std::int64_t, std::uint16_t*) { check(false, kAbsent); }
void pair_rows(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, float*,
               std::int64_t) {
  check(false, kAbsent);
}

}  // namespace tessera::cpu

#endif
