#pragma once
/// Matrix products of bf16 by AVX512-BF16: a lane adds the products of two pairs of neighbours
/// along the contraction to a sum in f32 (VDPBF16PS). A result of bf16 is rounded once, when its
/// sum is complete. The unit takes anything below 2^-126 for zero, operands, sums and results.
///
/// Pairs of A are read one at a time: where they lie in memory if A's rows lie along the
/// contraction and have an even length, otherwise packed. Panels of B are packed.
///
/// Why oneDNN does not multiply bf16 here, as it does f32: of operands that lie in other ways than
/// it likes it makes slow copies, and its loops for these processors cannot run on others, while
/// ours are tested on all of them (tests/device/emulated).

#include <cstdint>
#include <string_view>

#include "tessera/gemm/gemm_blocks.h"
#include "tessera/gemm/gemm_shape.h"

namespace tessera::cpu {

/// A product made ready once. Calls may come from several threads at once, each with its own
/// scratch. Every element is the same sum in the same order, in whatever part of a larger product
/// it is computed.
template <typename OutType>
class DotGemm {
 public:
  using In = Bf16;
  using Out = OutType;  // float or Bf16
  static constexpr std::string_view kMatmulName = "avx512-bf16:matmul";
  static constexpr std::string_view kGroupedName = "avx512-bf16:grouped";
  static constexpr bool kReadsRowsInPlace = true;  // those of A, as above
  static constexpr std::int64_t kRowGrain = 16, kColumnGrain = 16;

  /// Sizes are at least 1; tile_unit_usable(TileUnit::Dots). Results of bf16 are not added to
  /// others.
  explicit DotGemm(const GemmShape& shape);
  /// True where vectors are full enough for this unit to be the faster one.
  static bool pays(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

  /// Of execute; 64-byte aligned.
  std::int64_t scratch_bytes() const { return blocks_.scratch_bytes(); }
  void execute(const Bf16* a, const Bf16* b, Out* c, void* scratch) const;

 private:
  GemmShape shape_;
  GemmBlocks blocks_;
  bool packs_a_ = false;
};

}  // namespace tessera::cpu
