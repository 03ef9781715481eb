#pragma once
/// Scores of attention from operands of bf16 as they lie, by AVX512-BF16: a lane adds two products
/// of bf16 to a sum of f32, so an instruction does the work of two, and no key is widened.

#include <cstdint>

#include "tessera/device/cpu/lines_ahead.h"

namespace tessera::cpu {

/// c[i][j] = scale * sum over e of a[i][e] b[j][e]. Rows of `a` hold 2 * pairs numbers of bf16; b
/// is turned to [pair][j], a pair in the 32 bits of an f32. The instruction takes numbers below
/// 2^-126 for zero.
struct DotProduct {
  std::int64_t rows, cols, pairs;  // cols: a multiple of 16
  const std::uint16_t* a;
  std::int64_t a_row;  // in numbers
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  float scale;
  ListAhead* ahead;
};

/// Only where the processor has AVX512-BF16.
void multiply_dots(const DotProduct& product);

}  // namespace tessera::cpu
