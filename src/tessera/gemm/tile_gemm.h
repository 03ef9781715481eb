#pragma once
/// Matrix products whose operands are packed to tiles of bf16, on AMX, which multiplies bf16 and
/// adds in f32.
///
/// Operands of bf16 are multiplied as they are. Sums are made in f32; a result of bf16 is rounded
/// once, when its sum is complete.
///
/// Operands of f32: every f32 is exactly the sum of three bf16, as 24 bits of significand are three
/// times 8. Of the nine products of parts the six largest are added; those left out are at most
/// 2^-24 of a product, as much as one f32 rounding. Sums are made in f32, 32 terms at a time: from
/// 16 terms on, errors are smaller than those of a multiply-add per term.
///
/// It differs from plain f32 only at the ends of the range. The unit takes anything below 2^-126
/// for zero, operands, sums and results. With f32 operands that includes parts: numbers below
/// 2^-102 keep fewer bits, and so do products, which are down to 8 bits at 2^-118; results within
/// 2^-8 of the largest f32 may become infinite, as high parts are rounded up; where an operand is
/// infinite or above 3.396e38 the result is NaN.
///
/// Source: Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
/// Higher-Precision Computations", 2019 (arXiv:1904.06376).

#include <cstdint>
#include <string_view>

#include "tessera/gemm/gemm_blocks.h"
#include "tessera/gemm/gemm_shape.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

/// A product made ready once. Calls may come from several threads at once, each with its own
/// scratch. Every element is the same sum in the same order, in whatever part of a larger product
/// it is computed.
template <typename InType, typename OutType>
class TileGemm {
 public:
  using In = InType;    // float or Bf16
  using Out = OutType;  // the same
  static constexpr std::string_view kMatmulName = "amx:matmul";
  static constexpr std::string_view kGroupedName = "amx:grouped";
  static constexpr bool kReadsRowsInPlace = false;  // those of A that lie along the contraction
  static constexpr std::int64_t kRowGrain = 16, kColumnGrain = 16;  // of a tile

  /// Sizes are at least 1; tile_unit_usable(TileUnit::Amx). Results of bf16 are not added to
  /// others.
  explicit TileGemm(const GemmShape& shape);
  /// True where tiles are full enough for this unit to be the faster one.
  static bool pays(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

  /// Of execute; 64-byte aligned.
  std::int64_t scratch_bytes() const { return blocks_.scratch_bytes(); }
  void execute(const In* a, const In* b, Out* c, void* scratch) const;

 private:
  GemmShape shape_;
  GemmBlocks blocks_;
};

using AmxGemm = TileGemm<float, float>;

}  // namespace tessera::cpu
