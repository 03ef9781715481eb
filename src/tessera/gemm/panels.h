#pragma once
/// f32 matrix products of our own for 16 vector registers (AVX2): both operands go through panels
/// that lie packed in a core's caches, so that no way in which they lie in memory is slow.

#include <cstdint>
#include <string_view>

#include "tessera/gemm/gemm_shape.h"

namespace tessera::cpu {

/// A product made ready once. Calls may come from several threads at once, each with its own
/// scratch. Every element is the same sum in the same order, in whatever part of a larger product
/// it is computed.
class PanelGemm {
 public:
  using In = float;
  using Out = float;
  static constexpr std::string_view kMatmulName = "hwy:matmul";
  static constexpr std::string_view kGroupedName = "hwy:grouped";
  static constexpr bool kReadsRowsInPlace = false;  // those of A that lie along the contraction
  static constexpr std::int64_t kRowGrain = 6, kColumnGrain = 16;  // how parts are cut

  /// Sizes are at least 1.
  explicit PanelGemm(const GemmShape& shape);
  /// True where this is faster than oneDNN: on processors whose highest instruction set is AVX2, if
  /// enough rows and columns of a thread share what it packs, or all matrices fit the last cache.
  static bool pays(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

  std::int64_t scratch_bytes() const;  // of execute; 64-byte aligned
  void execute(const float* a, const float* b, float* c, void* scratch) const;

 private:
  GemmShape shape_;
  std::int64_t depth_ = 0, width_ = 0;  // of the contraction, of B's columns: what lies packed
  std::int64_t packed_rows_ = 0;        // of A; 0: they are read where they are
};

}  // namespace tessera::cpu
