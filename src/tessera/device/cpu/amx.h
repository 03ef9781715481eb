#pragma once
/// f32 matrix products on the tile unit of x86 processors (AMX), which multiplies bf16 and adds in
/// f32.
///
/// Every f32 is exactly the sum of three bf16: 24 bits of significand are three times 8. Of the
/// nine products of parts the six largest are added; those left out are at most 2^-24 of a product,
/// as much as one f32 rounding. Sums are made in f32, 32 terms at a time, so that errors are
/// smaller than those of a multiply-add per term. What differs from plain f32: what lies below
/// 2^-126 counts as zero, in results and in parts of operands (numbers below 2^-102 keep fewer
/// bits), and where an operand is infinite or above 3.39e38 the result is NaN.
/// Source: Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
/// Higher-Precision Computations", 2019 (arXiv:1904.06376).

#include <cstdint>
#include <string_view>

#include "tessera/device/cpu/gemm_shape.h"

namespace tessera::cpu {

/// True where the processor has AMX with bf16 and the system lets this process use it. The first
/// call asks the system.
bool amx_usable();

/// A product made ready once. Calls may come from several threads at once, each with its own
/// scratch. Every element is the same sum in the same order, in whatever part of a larger product
/// it is computed.
class AmxGemm {
 public:
  static constexpr std::string_view kMatmulName = "amx:matmul";
  static constexpr std::int64_t kGrain = 32;  // rows or columns that are computed together

  explicit AmxGemm(const GemmShape& shape);
  /// True where tiles are full enough for this unit to be the faster one.
  static bool pays(std::int64_t m, std::int64_t n, std::int64_t k);

  std::int64_t scratch_bytes() const;  // of execute; 64-byte aligned
  void execute(const float* a, const float* b, float* c, void* scratch) const;

 private:
  GemmShape shape_;
  // Of the contraction, of rows of A and of columns of B: what lies packed in scratch at a time.
  std::int64_t depth_ = 0, height_ = 0, width_ = 0;
};

}  // namespace tessera::cpu
