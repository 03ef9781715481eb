#pragma once
/// Products of packed panels (tile_pack.h) by AMX: of at most two tiles by two.

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "tessera/gemm/tile_pack.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

/// The intrinsics do not tell the compiler which memory a tile is loaded from.
inline void compiler_barrier() { asm volatile("" ::: "memory"); }

/// The shape of all eight tile registers, as the processor reads it.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// While this lives, the calling thread may use the unit; before and after, the processor need not
/// keep tiles.
class InUse {
 public:
  TESSERA_TILES InUse() {
    static constexpr TileConfig
        kConfig;  // GCC is told of its first 8 bytes only: no stores to lose
    _tile_loadconfig(&kConfig);
  }
  TESSERA_TILES ~InUse() { _tile_release(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
};

/// Tile registers: 0 to 3 the result, row by row; 4 and 5 rows of A, 6 and 7 columns of B.
template <int rows, int cols>
TESSERA_TILES inline void multiply_tiles() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (cols > 1) _tile_dpbf16ps(1, 4, 7);
  if constexpr (rows > 1) _tile_dpbf16ps(2, 5, 6);
  if constexpr (rows > 1 && cols > 1) _tile_dpbf16ps(3, 5, 7);
}
template <int rows>
TESSERA_TILES inline void load_a(const char* at) {
  _tile_loadd(4, at, 64);
  if constexpr (rows > 1) _tile_loadd(5, at + kTileBytes, 64);
}
template <int cols>
TESSERA_TILES inline void load_b(const char* at) {
  _tile_loadd(6, at, 64);
  if constexpr (cols > 1) _tile_loadd(7, at + kTileBytes, 64);
}

/// rows x cols tiles of the result from a panel each of A and B. `c` has room for whole
/// tiles.
template <typename In, int rows, int cols>
TESSERA_TILES void multiply_panels(const char* a, const char* b, std::int64_t steps, float* c,
                                   std::int64_t c_row, bool accumulate) {
  compiler_barrier();
  const std::size_t stride = static_cast<std::size_t>(c_row) * sizeof(float);
  float* const below = c + kTile * c_row;
  if (accumulate) {
    _tile_loadd(0, c, stride);
    if constexpr (cols > 1) _tile_loadd(1, c + kTile, stride);
    if constexpr (rows > 1) _tile_loadd(2, below, stride);
    if constexpr (rows > 1 && cols > 1) _tile_loadd(3, below + kTile, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  constexpr std::int64_t kA = rows * kTileBytes, kB = cols * kTileBytes;  // of one part
  for (std::int64_t step = 0; step < steps; ++step) {
    if constexpr (kParts<In> == 1) {
      load_a<rows>(a), load_b<cols>(b), multiply_tiles<rows, cols>();
    } else {
      // Small products first; each step changes one operand.
      load_a<rows>(a + kA), load_b<cols>(b + kB), multiply_tiles<rows, cols>();  // middle, middle
      load_b<cols>(b), multiply_tiles<rows, cols>();                             // middle, high
      load_a<rows>(a + 2 * kA), multiply_tiles<rows, cols>();                    // low, high
      load_a<rows>(a), multiply_tiles<rows, cols>();                             // high, high
      load_b<cols>(b + kB), multiply_tiles<rows, cols>();                        // high, middle
      load_b<cols>(b + 2 * kB), multiply_tiles<rows, cols>();                    // high, low
    }
    a += step_bytes<In>(rows), b += step_bytes<In>(cols);
  }
  _tile_stored(0, c, stride);
  if constexpr (cols > 1) _tile_stored(1, c + kTile, stride);
  if constexpr (rows > 1) _tile_stored(2, below, stride);
  if constexpr (rows > 1 && cols > 1) _tile_stored(3, below + kTile, stride);
}

}  // namespace tessera::cpu

#endif
