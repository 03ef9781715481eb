#include "tessera/device/cpu/amx.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tessera/base/error.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

// GCC 12 takes the undefined operands of its own intrinsics for ours (bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace tessera::cpu {

namespace {

#define TESSERA_AMX __attribute__((target("amx-tile,amx-bf16,avx512f")))
#define TESSERA_INLINE inline __attribute__((always_inline))

constexpr std::int64_t kTile = 16;          // rows of a tile, and its 4-byte columns
constexpr std::int64_t kDepth = 2 * kTile;  // of the contraction per tile: a column holds two bf16
constexpr std::int64_t kTileBytes = 1024;
constexpr std::int64_t kParts = 3;  // bf16 whose sum is an f32
constexpr std::int64_t kPanel = 2;  // tiles side by side in a panel of rows of A or columns of B
constexpr std::int64_t kWide = kPanel * kTile;
static_assert(kWide == AmxGemm::kGrain);

std::int64_t up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// A source matrix as a packer reads it: `across` is the dim of the panel (rows of A, columns of
/// B), `along` that of the contraction.
struct Source {
  const float* data;
  std::int64_t across, along;  // strides, one of them 1
};

/// Bits 0 to n - 1.
TESSERA_AMX __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(n, 0, kTile)) - 1);
}

/// Writes two rows of 16 numbers as pairs of bf16, in three parts, `stride` apart, whose sum they
/// are.
TESSERA_AMX TESSERA_INLINE void split(__m512 low, __m512 high, char* to, std::int64_t stride) {
  const __m512i half = _mm512_set1_epi32(0x8000), top = _mm512_set1_epi32(-0x10000);
#pragma GCC unroll 2
  for (int part = 0; part < kParts - 1; ++part) {
    const __m512i near_low =
        _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(low), half), top);
    const __m512i near_high =
        _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(high), half), top);
    _mm512_store_si512(to, _mm512_or_si512(_mm512_srli_epi32(near_low, 16), near_high));
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(near_low));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(near_high));
    to += stride;
  }
  // What is left has no more than 8 bits.
  const __m512i last = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
  _mm512_store_si512(to, _mm512_or_si512(last, _mm512_and_si512(_mm512_castps_si512(high), top)));
}

/// Rows of 64 bytes become columns of 4 bytes.
TESSERA_AMX TESSERA_INLINE void transpose(const char* from, char* to) {
  __m512i r[kTile], t[kTile];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(from + 64 * i);
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(to + 64 * i, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(to + 64 * (i + 4), _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_store_si512(to + 64 * (i + 8), _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    _mm512_store_si512(to + 64 * (i + 12), _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

/// Which dim the lanes of a packed tile's rows go along.
enum class Lanes { Across, Along };

/// Which dim lies densely in the source.
enum class Dense { Across, Along };

/// Writes one tile per part, `stride` bytes apart: for A a tile's rows go across and its lanes
/// along, for B the other way round. Lane (or row) j holds the elements j and 16 + j along. What
/// lies beyond `across` or `along` is zero.
template <Lanes lanes, Dense dense>
TESSERA_AMX TESSERA_INLINE void pack_tile(const Source& from, std::int64_t across,
                                          std::int64_t along, char* to, std::int64_t stride) {
  constexpr bool kAlong = dense == Dense::Along;
  constexpr bool kTurned = kAlong != (lanes == Lanes::Along);
  const float* low = from.data;
  const float* high = low + kTile * from.along;
  const std::int64_t row = kAlong ? from.across : from.along;
  alignas(64) char rows[kTurned ? kParts * kTileBytes : 1];
  char* const split_to = kTurned ? rows : to;
  const std::int64_t split_stride = kTurned ? kTileBytes : stride;
  if (across >= kTile && along >= kDepth) {
#pragma GCC unroll 2
    for (int i = 0; i < kTile; ++i, low += row, high += row)
      split(_mm512_loadu_ps(low), _mm512_loadu_ps(high), split_to + i * 64, split_stride);
  } else {
    const std::int64_t low_rows = kAlong ? across : along;
    const std::int64_t high_rows = kAlong ? across : along - kTile;
    const __mmask16 low_lanes = first_lanes(kAlong ? along : across);
    const __mmask16 high_lanes = first_lanes(kAlong ? along - kTile : across);
    for (int i = 0; i < kTile; ++i, low += row, high += row) {
      split(_mm512_maskz_loadu_ps(i < low_rows ? low_lanes : __mmask16{0}, low),
            _mm512_maskz_loadu_ps(i < high_rows ? high_lanes : __mmask16{0}, high),
            split_to + i * 64, split_stride);
    }
  }
  if constexpr (kTurned) {
    for (int part = 0; part < kParts; ++part)
      transpose(rows + part * kTileBytes, to + part * stride);
  }
}

/// Bytes of a packed panel of `tiles` tiles across, per step of kDepth along.
constexpr std::int64_t step_bytes(std::int64_t tiles) { return kParts * tiles * kTileBytes; }

/// Packs a block: panels across, in each the steps along, in each the parts, in each the tiles
/// across. The source is read the way it lies.
template <Lanes lanes, Dense dense>
TESSERA_AMX void pack_panels(const Source& from, std::int64_t across, std::int64_t along,
                             char* to) {
  const std::int64_t panels = up(across, kWide) / kWide, steps = up(along, kDepth) / kDepth;
  const auto pack = [&](std::int64_t panel, std::int64_t step) TESSERA_AMX {
    const std::int64_t left = panel * kWide,
                       tiles = up(std::min(kWide, across - left), kTile) / kTile;
    char* const at = to + panel * steps * step_bytes(kPanel) + step * step_bytes(tiles);
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t x = left + tile * kTile, k = step * kDepth;
      pack_tile<lanes, dense>(
          {from.data + x * from.across + k * from.along, from.across, from.along}, across - x,
          along - k, at + tile * kTileBytes, tiles * kTileBytes);
    }
  };
  if constexpr (dense == Dense::Across) {
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::int64_t panel = 0; panel < panels; ++panel) pack(panel, step);
  } else {
    for (std::int64_t panel = 0; panel < panels; ++panel)
      for (std::int64_t step = 0; step < steps; ++step) pack(panel, step);
  }
}

template <Lanes lanes>
TESSERA_AMX void pack_block(const Source& from, std::int64_t across, std::int64_t along, char* to) {
  if (from.along == 1) {
    pack_panels<lanes, Dense::Along>(from, across, along, to);
  } else {
    pack_panels<lanes, Dense::Across>(from, across, along, to);
  }
}

std::int64_t block_bytes(std::int64_t across, std::int64_t along) {
  return up(along, kDepth) / kDepth * step_bytes(up(across, kTile) / kTile);
}

/// The intrinsics do not tell the compiler which memory a tile is loaded from.
inline void compiler_barrier() { asm volatile("" ::: "memory"); }

/// Tile registers: 0 to 3 the result, row by row; 4 and 5 rows of A, 6 and 7 columns of B.
template <int rows, int cols>
TESSERA_AMX inline void multiply() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (cols > 1) _tile_dpbf16ps(1, 4, 7);
  if constexpr (rows > 1) _tile_dpbf16ps(2, 5, 6);
  if constexpr (rows > 1 && cols > 1) _tile_dpbf16ps(3, 5, 7);
}
template <int rows>
TESSERA_AMX inline void load_a(const char* at) {
  _tile_loadd(4, at, 64);
  if constexpr (rows > 1) _tile_loadd(5, at + kTileBytes, 64);
}
template <int cols>
TESSERA_AMX inline void load_b(const char* at) {
  _tile_loadd(6, at, 64);
  if constexpr (cols > 1) _tile_loadd(7, at + kTileBytes, 64);
}

/// rows x cols tiles of the result from a panel each of A and B. `c` has room for whole tiles.
template <int rows, int cols>
TESSERA_AMX void multiply_panels(const char* a, const char* b, std::int64_t steps, float* c,
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
    // Small products first; each step changes one operand.
    load_a<rows>(a + kA), load_b<cols>(b + kB), multiply<rows, cols>();  // middle, middle
    load_b<cols>(b), multiply<rows, cols>();                             // middle, high
    load_a<rows>(a + 2 * kA), multiply<rows, cols>();                    // low, high
    load_a<rows>(a), multiply<rows, cols>();                             // high, high
    load_b<cols>(b + kB), multiply<rows, cols>();                        // high, middle
    load_b<cols>(b + 2 * kB), multiply<rows, cols>();                    // high, low
    a += step_bytes(rows), b += step_bytes(cols);
  }
  _tile_stored(0, c, stride);
  if constexpr (cols > 1) _tile_stored(1, c + kTile, stride);
  if constexpr (rows > 1) _tile_stored(2, below, stride);
  if constexpr (rows > 1 && cols > 1) _tile_stored(3, below + kTile, stride);
}

using MultiplyPanels = void (*)(const char*, const char*, std::int64_t, float*, std::int64_t, bool);
constexpr MultiplyPanels kMultiplyPanels[kPanel][kPanel] = {
    {multiply_panels<1, 1>, multiply_panels<1, 2>}, {multiply_panels<2, 1>, multiply_panels<2, 2>}};

/// A part of the result, on tiles that may reach beyond it.
TESSERA_AMX void multiply_part(const char* a, const char* b, std::int64_t along, float* c,
                               std::int64_t c_row, std::int64_t m, std::int64_t n,
                               bool accumulate) {
  const std::int64_t rows = up(m, kTile), cols = up(n, kTile), steps = up(along, kDepth) / kDepth;
  const MultiplyPanels run = kMultiplyPanels[rows / kTile - 1][cols / kTile - 1];
  if (rows == m && cols == n) return run(a, b, steps, c, c_row, accumulate);
  alignas(64) float whole[kPanel * kTile * kPanel * kTile];
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  if (accumulate) {
    std::memset(whole, 0, sizeof(whole));
    for (std::int64_t i = 0; i < m; ++i) std::memcpy(whole + i * cols, c + i * c_row, bytes);
  }
  run(a, b, steps, whole, cols, accumulate);
  for (std::int64_t i = 0; i < m; ++i) std::memcpy(c + i * c_row, whole + i * cols, bytes);
}

/// The shape of all eight tile registers, as the processor reads it.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// While this lives, the calling thread has tiles; before and after the processor need not keep
/// them.
class Tiles {
 public:
  TESSERA_AMX Tiles() {
    static constexpr TileConfig kConfig;
    _tile_loadconfig(&kConfig);
  }
  TESSERA_AMX ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

bool ask() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTileUnit = 1U << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kBf16) == 0 || (d & kTileUnit) == 0 || __builtin_cpu_supports("avx512f") == 0)
    return false;
  // Linux hands out the tiles' state (17 and 18 of XCR0) on request, for the process.
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

constexpr std::int64_t kDeepest = 128, kHighest = 64;
constexpr std::int64_t kWidestBytes = 1 << 20;  // of a core's second cache

/// The size of n's equal parts that are multiples of `grain` and not much larger than `most`.
std::int64_t part_of(std::int64_t n, std::int64_t most, std::int64_t grain) {
  const std::int64_t parts = (n + most - 1) / most;
  return up((n + parts - 1) / parts, grain);
}

}  // namespace

bool amx_usable() {
  static const bool usable = ask();
  return usable;
}

AmxGemm::AmxGemm(const GemmShape& shape) : shape_(shape) {
  depth_ = part_of(shape.k, kDeepest, kDepth);
  height_ = part_of(shape.m, kHighest, kWide);
  width_ = part_of(
      shape.n, std::max(kWidestBytes / block_bytes(kWide, depth_), std::int64_t{1}) * kWide, kWide);
}

bool AmxGemm::pays(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::min({m, n, k}) >= kTile && m * n * k >= 32 * 32 * 32;
}

std::int64_t AmxGemm::scratch_bytes() const {
  return block_bytes(std::min(width_, shape_.n), depth_) +
         block_bytes(std::min(height_, shape_.m), depth_);
}

TESSERA_AMX void AmxGemm::execute(const float* a, const float* b, float* c, void* scratch) const {
  const Tiles tiles;
  const GemmShape& s = shape_;
  char* const packed_b = static_cast<char*>(scratch);
  char* const packed_a = packed_b + block_bytes(std::min(width_, s.n), depth_);
  for (std::int64_t k = 0; k < s.k; k += depth_) {
    const std::int64_t along = std::min(depth_, s.k - k), panel = block_bytes(kWide, along);
    for (std::int64_t left = 0; left < s.n; left += width_) {
      const std::int64_t width = std::min(width_, s.n - left);
      pack_block<Lanes::Across>({b + k * s.b_row + left * s.b_col, s.b_col, s.b_row}, width, along,
                                packed_b);
      for (std::int64_t top = 0; top < s.m; top += height_) {
        const std::int64_t height = std::min(height_, s.m - top);
        pack_block<Lanes::Along>({a + top * s.a_row + k * s.a_col, s.a_row, s.a_col}, height, along,
                                 packed_a);
        for (std::int64_t i = 0; i < height; i += kWide) {
          for (std::int64_t j = 0; j < width; j += kWide) {
            multiply_part(packed_a + i / kWide * panel, packed_b + j / kWide * panel, along,
                          c + (top + i) * s.c_row + left + j, s.c_row, std::min(kWide, height - i),
                          std::min(kWide, width - j), s.accumulate || k > 0);
          }
        }
      }
    }
  }
}

}  // namespace tessera::cpu

#else

namespace tessera::cpu {

bool amx_usable() { return false; }

AmxGemm::AmxGemm(const GemmShape&) { check(false, "this processor has no AMX"); }
bool AmxGemm::pays(std::int64_t, std::int64_t, std::int64_t) { return false; }
std::int64_t AmxGemm::scratch_bytes() const { return 0; }
void AmxGemm::execute(const float*, const float*, float*, void*) const {}

}  // namespace tessera::cpu

#endif
