#pragma once
/// f32 matrix products on the tile unit of x86 processors (AMX), which multiplies bf16 and adds in
/// f32.
///
/// Every f32 is exactly the sum of three bf16: 24 bits of significand are three times 8. Of the
/// nine products of parts the six largest are added; those left out are at most 2^-24 of a product,
/// as much as one f32 rounding. Sums are made in f32, 32 terms at a time: from 16 terms on, errors
/// are smaller than those of a multiply-add per term.
///
/// It differs from plain f32 only at the ends of the range. Anything below 2^-126 counts as
/// zero, results and parts included: numbers below 2^-102 keep fewer bits, and so do products,
/// which are down to 8 bits at 2^-118. Results within 2^-8 of the largest f32 may become infinite,
/// as high parts are rounded up. Where an operand is infinite or above 3.396e38 the result is NaN.
///
/// Source: Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
/// Higher-Precision Computations", 2019 (arXiv:1904.06376).

#include <cstdint>
#include <string_view>

#include "tessera/device/cpu/gemm_shape.h"

namespace tessera::cpu {

/// True where the processor has AMX with bf16 and the system lets this process use it: the first
/// call asks, for all threads and for processes that are forked later.
bool amx_usable();

/// A product made ready once. Calls may come from several threads at once, each with its own
/// scratch. Every element is the same sum in the same order, in whatever part of a larger product
/// it is computed.
class AmxGemm {
 public:
  static constexpr std::string_view kMatmulName = "amx:matmul";
  static constexpr std::int64_t kGrain = 16;  // rows or columns of a tile

  /// Sizes are at least 1. amx_usable().
  explicit AmxGemm(const GemmShape& shape);
  /// True where tiles are full enough for this unit to be the faster one.
  static bool pays(std::int64_t m, std::int64_t n, std::int64_t k);

  std::int64_t scratch_bytes() const;  // of execute; 64-byte aligned
  void execute(const float* a, const float* b, float* c, void* scratch) const;

 private:
  void pass(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
            std::int64_t along, bool accumulate, char* packed_b) const;

  GemmShape shape_;
  // Of the contraction, of rows of A and of columns of B: what lies packed in scratch at a time.
  std::int64_t depth_ = 0, height_ = 0, width_ = 0;
};

}  // namespace tessera::cpu
