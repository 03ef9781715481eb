#pragma once
/// Products of packed panels (tile_pack.h), by either unit: of at most two tiles by two.

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "tessera/device/cpu/tile_pack.h"
#include "tessera/device/cpu/tile_unit.h"

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
template <TileUnit unit>
class InUse {
 public:
  TESSERA_TILES InUse() {
    static constexpr TileConfig
        kConfig;  // GCC is told of its first 8 bytes only: no stores to lose
    if constexpr (unit == TileUnit::Amx) _tile_loadconfig(&kConfig);
  }
  TESSERA_TILES ~InUse() {
    if constexpr (unit == TileUnit::Amx) _tile_release();
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
};

/// Where sums of a part of the result lie, and where they go once they are complete and rounded.
struct Sums {
  float* at;
  std::int64_t row;
  bool accumulate;          // onto those that lie there
  Bf16* rounded = nullptr;  // null: they are not complete, or stay in f32
  std::int64_t rounded_row = 0;

  Sums part(std::int64_t i, std::int64_t j) const {
    return {at + i * row + j, row, accumulate,
            rounded == nullptr ? nullptr : rounded + i * rounded_row + j, rounded_row};
  }
};

TESSERA_TILES inline void round_to(__m512 sums, Bf16* to, __mmask16 lanes = 0xFFFF) {
  _mm256_mask_storeu_epi16(to, lanes, __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(sums)));
}

/// Rounds `n` sums. `from` has room for whole vectors.
TESSERA_TILES inline void round_row(const float* from, Bf16* to, std::int64_t n) {
  for (; n > 0; n -= kTile, from += kTile, to += kTile)
    round_to(_mm512_loadu_ps(from), to, static_cast<__mmask16>(n >= kTile ? 0xFFFF : (1 << n) - 1));
}

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

/// rows x cols tiles of the result from a panel each of A and B, by AMX. `c` has room for whole
/// tiles.
template <typename In, int rows, int cols>
TESSERA_TILES void multiply_by_tiles(const char* a, const char* b, std::int64_t steps, float* c,
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

/// kDotRows rows of the result: two vectors of columns each leave half of the registers for
/// operands, and sixteen sums hide how long each takes.
constexpr int kDotRows = 8;

/// A number of A is read alone, so its tiles may lie either way. `a_step`: bytes from one step to
/// the next.
template <Lanes lanes, int cols>
TESSERA_TILES inline void dot_rows(const char* a, std::int64_t a_step, const char* b,
                                   std::int64_t steps, const Sums& c) {
  constexpr int kRow = lanes == Lanes::Along ? 64 : 4, kPair = lanes == Lanes::Along ? 4 : 64;
  __m512 sums[kDotRows * cols];
#pragma GCC unroll 16
  for (int i = 0; i < kDotRows * cols; ++i)
    sums[i] = c.accumulate ? _mm512_loadu_ps(c.at + i / cols * c.row + i % cols * kTile)
                           : _mm512_setzero_ps();
  for (std::int64_t step = 0; step < steps; ++step, a += a_step, b += step_bytes<Bf16>(cols)) {
    for (std::int64_t pair = 0; pair < kTile; ++pair) {
      __m512i right[cols];
#pragma GCC unroll 2
      for (int j = 0; j < cols; ++j) right[j] = _mm512_load_si512(b + j * kTileBytes + pair * 64);
#pragma GCC unroll 8
      for (int i = 0; i < kDotRows; ++i) {
        const __m512i left =
            _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(a + i * kRow + pair * kPair));
#pragma GCC unroll 2
        for (int j = 0; j < cols; ++j)
          sums[i * cols + j] =
              _mm512_dpbf16_ps(sums[i * cols + j], __builtin_bit_cast(__m512bh, left),
                               __builtin_bit_cast(__m512bh, right[j]));
      }
    }
  }
  if (c.rounded == nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kDotRows * cols; ++i)
      _mm512_storeu_ps(c.at + i / cols * c.row + i % cols * kTile, sums[i]);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kDotRows * cols; ++i)
      round_to(sums[i], c.rounded + i / cols * c.rounded_row + i % cols * kTile);
  }
}

/// The same as multiply_by_tiles, by dot products of pairs.
template <Lanes lanes, typename In, int rows, int cols>
TESSERA_TILES void multiply_by_dots(const char* a, const char* b, std::int64_t steps,
                                    const Sums& c) {
  static_assert(kParts<In> == 1);
  for (std::int64_t row = 0; row < rows * kTile; row += kDotRows) {
    const std::int64_t in_tile = row % kTile * (lanes == Lanes::Along ? 64 : 4),
                       at = row / kTile * kTileBytes + in_tile;
    dot_rows<lanes, cols>(a + at, step_bytes<In>(rows), b, steps, c.part(row, 0));
  }
}

/// Units whose products are rounded as they leave the registers; of the others, the caller does.
template <TileUnit unit>
constexpr bool kRoundsItself = unit == TileUnit::Dots;

/// The lanes of an A whose rows lie along its columns. Dots read one number at a time, in whatever
/// way tiles lie, so that nothing need be turned; tiles of Amx lie in one way.
template <TileUnit unit>
constexpr Lanes kTurned = unit == TileUnit::Dots ? Lanes::Across : Lanes::Along;

template <TileUnit unit, Lanes lanes, typename In, int rows, int cols>
TESSERA_TILES void multiply_panels(const char* a, const char* b, std::int64_t steps,
                                   const Sums& c) {
  if constexpr (unit == TileUnit::Amx) {
    multiply_by_tiles<In, rows, cols>(a, b, steps, c.at, c.row, c.accumulate);
  } else {
    multiply_by_dots<lanes, In, rows, cols>(a, b, steps, c);
  }
}

}  // namespace tessera::cpu

#endif
