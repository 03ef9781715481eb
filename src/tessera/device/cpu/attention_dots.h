#pragma once
/// Products of attention by AVX512-BF16: a lane adds two products of bf16 to a sum of f32, so an
/// instruction does the work of two.

#include <cstdint>

#include "tessera/gemm/lines_ahead.h"

namespace tessera::cpu {

/// c[i][j] = scale * sum over e of a[i][e] b[e][j]; or, with a scale of 1, added to what is there.
/// Both operands are bf16 by pairs of neighbours along e: of `b` [pair][j], a pair in the 32 bits
/// of an f32. The instruction takes numbers below 2^-126 for zero.
struct DotProduct {
  std::int64_t rows, cols, pairs;  // cols: a multiple of 16
  const std::uint16_t* a;
  std::int64_t a_row, a_pair;  // from one to the next, in numbers
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  float scale;
  bool accumulate;
  ListAhead* ahead;
};

// Only where the processor has AVX512-BF16.

void multiply_dots(const DotProduct& product);

/// f32 to bf16, `n` of them, a multiple of 16; `to` may be at `from`.
void round_to_bf16(const float* from, std::int64_t n, std::uint16_t* to);

/// Pairs of rows of bf16 that lie `stride` numbers apart: to[i][j] is from[2 i][j] and
/// from[2 i + 1][j], zero where there is no such row, and in columns from `cols` to `wide`.
void pair_rows(const std::uint16_t* from, std::int64_t stride, std::int64_t rows, std::int64_t cols,
               float* to, std::int64_t wide);

}  // namespace tessera::cpu
