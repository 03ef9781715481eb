#pragma once
/// Operands of products by dot products of pairs (dot_gemm.h): pairs of neighbours along the
/// contraction become the 32-bit lanes of vectors. Code for processors with AVX512-BF16; whoever
/// calls it has asked whether there is one.

#if defined(__x86_64__) && defined(__linux__)

#include <cstdint>

#include "tessera/base/round_up.h"
#include "tessera/gemm/gemm_shape.h"
#include "tessera/gemm/sums.h"

namespace tessera::cpu {

constexpr std::int64_t kAcross = 2 * kLanes;  // columns of a panel: two vectors of pairs

/// Bytes of a pair of all columns of the panel in which column `x` of `across` is: the last panel
/// has one vector if that is enough.
constexpr std::int64_t pair_bytes(std::int64_t across, std::int64_t x) {
  return across - x / kAcross * kAcross > kLanes ? 128 : 64;
}
/// Bytes of a packed block, and so the offset of what lies behind it.
constexpr std::int64_t packed_bytes(std::int64_t across, std::int64_t along) {
  return round_up(across, kLanes) * round_up(along, 2 * kLanes) * 2;
}

/// A source matrix as a packer reads it: `across` is the dim of a panel (rows of A, columns of B),
/// `along` that of the contraction. Strides, one of them 1.
struct PairSource {
  const Bf16* data;
  std::int64_t across, along;
};

/// Packs a block: panels across, in each the pairs along, in each the columns. What fills the last
/// vector and the last pair up is zero. `to` is 64-byte aligned.
void pack_pairs(const PairSource& from, std::int64_t across, std::int64_t along, char* to);

}  // namespace tessera::cpu

#endif
