#pragma once
/// Operands of products on the tile unit (AMX): f32 matrices become tiles of bf16, three for one.
/// Code that uses the unit's instructions; whoever calls it has asked whether there are any.

#if defined(__x86_64__) && defined(__linux__)

#include <cstdint>

#include "tessera/base/round_up.h"

namespace tessera::cpu {

#define TESSERA_AMX __attribute__((target("amx-tile,amx-bf16,avx512f")))

constexpr std::int64_t kTile = 16;          // rows of a tile, and its 4-byte columns
constexpr std::int64_t kDepth = 2 * kTile;  // of the contraction per tile: a column holds two bf16
constexpr std::int64_t kTileBytes = 1024;
constexpr std::int64_t kParts = 3;  // bf16 whose sum is an f32
constexpr std::int64_t kPanel = 2;  // tiles side by side in a panel of rows of A or columns of B
constexpr std::int64_t kWide = kPanel * kTile;

/// Bytes of a packed panel of `tiles` tiles across, per step of kDepth along.
constexpr std::int64_t step_bytes(std::int64_t tiles) { return kParts * tiles * kTileBytes; }
/// Bytes of a packed block, and so the offset of what lies behind it.
constexpr std::int64_t block_bytes(std::int64_t across, std::int64_t along) {
  return round_up(along, kDepth) / kDepth * step_bytes(round_up(across, kTile) / kTile);
}

/// A source matrix as a packer reads it: `across` is the dim of the panel (rows of A, columns of
/// B), `along` that of the contraction.
struct Source {
  const float* data;
  std::int64_t across, along;  // strides, one of them 1
};

/// Which dim the lanes of a packed tile's rows go along: in A a tile's rows go across and its lanes
/// along, in B the other way round. Lane (or row) j holds the elements j and 16 + j along.
enum class Lanes { Across, Along };

/// Packs a block: panels across, in each the steps along, in each the parts, in each the tiles
/// across. What fills the last tiles up is zero. `to` is 64-byte aligned.
template <Lanes lanes>
void pack_block(const Source& from, std::int64_t across, std::int64_t along, char* to);

}  // namespace tessera::cpu

#endif
