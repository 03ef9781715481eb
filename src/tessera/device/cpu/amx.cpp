#include "tessera/device/cpu/amx.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/device/cpu/amx_pack.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tessera::cpu {

namespace {

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
  const std::int64_t rows = round_up(m, kTile), cols = round_up(n, kTile),
                     steps = round_up(along, kDepth) / kDepth;
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
    static constexpr TileConfig
        kConfig;  // GCC is told of its first 8 bytes only: no stores to lose
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

// Of the block of B that lies packed: half of a core's second cache. Wide is better than deep, as A
// is packed anew for every block; but each pass along the contraction reads and writes the result,
// whose neighbours other threads write, so that a long one takes few passes.
constexpr std::int64_t kBlockBytes = 1 << 20;
constexpr std::int64_t kDepths[] = {128, 384};
constexpr std::int64_t kHighest = 64;       // rows of A that lie packed
constexpr std::int64_t kResultRows = 1024;  // whose results are finished before the next ones

/// The size of n's equal parts that are multiples of `grain` and not much larger than `most`.
std::int64_t part_of(std::int64_t n, std::int64_t most, std::int64_t grain) {
  const std::int64_t parts = (n + most - 1) / most;
  return round_up((n + parts - 1) / parts, grain);
}

}  // namespace

bool amx_usable() {
  static const bool usable = ask();
  return usable;
}

AmxGemm::AmxGemm(const GemmShape& shape) : shape_(shape) {
  check(amx_usable(), "a product on a tile unit that this process may not use");
  check(std::min({shape.m, shape.n, shape.k}) > 0, "a product of nothing");
  const bool deep = shape.k > kDepths[1] && block_bytes(shape.n, kDepths[1]) <= kBlockBytes;
  depth_ = part_of(shape.k, kDepths[deep ? 1 : 0], kDepth);
  height_ = part_of(shape.m, kHighest, kWide);
  width_ = part_of(shape.n, kBlockBytes / block_bytes(kWide, depth_) * kWide, kWide);
}

bool AmxGemm::pays(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::min({m, n, k}) >= kGrain &&
         static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >= 32 * 32 * 32;
}

std::int64_t AmxGemm::scratch_bytes() const {
  return block_bytes(std::min(width_, shape_.n), depth_) +
         block_bytes(std::min(height_, shape_.m), depth_);
}

TESSERA_AMX void AmxGemm::execute(const float* a, const float* b, float* c, void* scratch) const {
  const Tiles tiles;
  const GemmShape& s = shape_;
  for (std::int64_t left = 0; left < s.n; left += width_) {
    for (std::int64_t top = 0; top < s.m; top += kResultRows) {
      const std::int64_t rows = std::min(kResultRows, s.m - top),
                         cols = std::min(width_, s.n - left);
      for (std::int64_t k = 0; k < s.k; k += depth_) {
        pass(a + top * s.a_row + k * s.a_col, b + k * s.b_row + left * s.b_col,
             c + top * s.c_row + left, rows, cols, std::min(depth_, s.k - k), s.accumulate || k > 0,
             static_cast<char*>(scratch));
      }
    }
  }
}

/// Adds a part of the contraction to a block of the result.
TESSERA_AMX void AmxGemm::pass(const float* a, const float* b, float* c, std::int64_t m,
                               std::int64_t n, std::int64_t along, bool accumulate,
                               char* packed_b) const {
  const GemmShape& s = shape_;
  char* const packed_a = packed_b + block_bytes(std::min(width_, s.n), depth_);
  const std::int64_t panel = block_bytes(kWide, along);
  pack_block<Lanes::Across>({b, s.b_col, s.b_row}, n, along, packed_b);
  for (std::int64_t top = 0; top < m; top += height_) {
    const std::int64_t height = std::min(height_, m - top);
    pack_block<Lanes::Along>({a + top * s.a_row, s.a_row, s.a_col}, height, along, packed_a);
    for (std::int64_t i = 0; i < height; i += kWide) {
      for (std::int64_t j = 0; j < n; j += kWide) {
        multiply_part(packed_a + i / kWide * panel, packed_b + j / kWide * panel, along,
                      c + (top + i) * s.c_row + j, s.c_row, std::min(kWide, height - i),
                      std::min(kWide, n - j), accumulate);
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
void AmxGemm::pass(const float*, const float*, float*, std::int64_t, std::int64_t, std::int64_t,
                   bool, char*) const {}

}  // namespace tessera::cpu

#endif
