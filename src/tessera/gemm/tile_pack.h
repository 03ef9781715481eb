#pragma once
/// Operands of products on tiles (tile_gemm.h): matrices of f32 become tiles of bf16, three for
/// one; those of bf16 are moved only. Code for processors with AVX-512; whoever calls it has asked
/// whether there is one.

#if defined(__x86_64__) && defined(__linux__)

#include <cstdint>
#include <type_traits>

#include "tessera/base/round_up.h"
#include "tessera/gemm/gemm_shape.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

constexpr std::int64_t kTile = 16;          // rows of a tile, and its 4-byte columns
constexpr std::int64_t kDepth = 2 * kTile;  // of the contraction per tile: a column holds two bf16
constexpr std::int64_t kTileBytes = 1024;
constexpr std::int64_t kPanel = 2;  // tiles side by side in a panel of rows of A or columns of B
constexpr std::int64_t kWide = kPanel * kTile;

/// bf16 whose sum is an element.
template <typename In>
constexpr std::int64_t kParts = std::is_same_v<In, float> ? 3 : 1;

/// Bytes of a packed panel of `tiles` tiles across, per step of kDepth along.
template <typename In>
constexpr std::int64_t step_bytes(std::int64_t tiles) {
  return kParts<In> * tiles * kTileBytes;
}
/// Bytes of a packed block, and so the offset of what lies behind it.
template <typename In>
constexpr std::int64_t block_bytes(std::int64_t across, std::int64_t along) {
  return round_up(along, kDepth) / kDepth * step_bytes<In>(round_up(across, kTile) / kTile);
}

/// A source matrix as a packer reads it: `across` is the dim of the panel (rows of A, columns of
/// B), `along` that of the contraction. In: float or Bf16.
template <typename In>
struct Source {
  const In* data;
  std::int64_t across, along;  // strides, one of them 1
};

/// Which dim the lanes of a packed tile's rows go along: in A a tile's rows go across and its lanes
/// along, in B the other way round. Lane (or row) j holds the elements j and 16 + j along.
enum class Lanes { Across, Along };

/// Packs a block: panels across, in each the steps along, in each the parts, in each the tiles
/// across. What fills the last tiles up is zero. `to` is 64-byte aligned.
template <Lanes lanes, typename In>
void pack_block(const Source<In>& from, std::int64_t across, std::int64_t along, char* to);

}  // namespace tessera::cpu

#endif
