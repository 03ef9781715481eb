#include "tessera/device/cpu/tile_gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/device/cpu/sums.h"
#include "tessera/device/cpu/tile_multiply.h"
#include "tessera/device/cpu/tile_pack.h"

namespace tessera::cpu {

#if defined(__x86_64__) && defined(__linux__)

namespace {

using MultiplyPanels = void (*)(const char*, const char*, std::int64_t, float*, std::int64_t, bool);
template <typename In>
constexpr MultiplyPanels kMultiplyPanels[kPanel][kPanel] = {
    {multiply_panels<In, 1, 1>, multiply_panels<In, 1, 2>},
    {multiply_panels<In, 2, 1>, multiply_panels<In, 2, 2>}};

/// A part of the result, on tiles that may reach beyond it.
template <typename In>
TESSERA_TILES void multiply_tiles_of(const char* a, const char* b, std::int64_t along,
                                     const Sums& sums, std::int64_t m, std::int64_t n) {
  const std::int64_t rows = round_up(m, kTile), cols = round_up(n, kTile),
                     steps = round_up(along, kDepth) / kDepth;
  const MultiplyPanels run = kMultiplyPanels<In>[rows / kTile - 1][cols / kTile - 1];
  if (rows == m && cols == n && sums.rounded == nullptr)
    return run(a, b, steps, sums.at, sums.row, sums.accumulate);
  alignas(64) float whole[kPanel * kTile * kPanel * kTile];
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  if (sums.accumulate) {
    std::memset(whole, 0, sizeof(whole));
    for (std::int64_t i = 0; i < m; ++i)
      std::memcpy(whole + i * cols, sums.at + i * sums.row, bytes);
  }
  run(a, b, steps, whole, cols, sums.accumulate);
  for (std::int64_t i = 0; i < m; ++i) {
    if (sums.rounded == nullptr) {
      std::memcpy(sums.at + i * sums.row, whole + i * cols, bytes);
    } else {
      round_row(whole + i * cols, sums.rounded + i * sums.rounded_row, n);
    }
  }
}

/// What lies packed at a time: rows of A, bytes of B, and so much of the contraction.
struct Blocking {
  std::int64_t rows, bytes, depth;
};

/// B in half of a core's second cache. Wide is better than deep, as A is packed anew for every
/// block; but each pass along the contraction reads and writes the result, whose neighbours other
/// threads write, so that a long one takes few passes. A bf16 takes a third of the room and a sixth
/// of the time of an f32: most contractions are one pass, and the result is written once.
template <typename In>
Blocking blocking(const GemmShape& shape) {
  constexpr std::int64_t kBytes = 1 << 20;
  if (std::is_same_v<In, Bf16>) return {64, kBytes, 1024};
  const bool deep = shape.k > 384 && block_bytes<In>(shape.n, 384) <= kBytes;
  return {64, kBytes, deep ? 384 : 128};
}

/// Rows of the result that are finished before the next ones, where that takes several passes: B is
/// packed anew for each lot, but sums should stay in cache from pass to pass.
constexpr std::int64_t kFinished = 1024, kFinishedRounded = 512;

/// The size of n's equal parts that are multiples of `grain` and not much larger than `most`.
std::int64_t part_of(std::int64_t n, std::int64_t most, std::int64_t grain) {
  const std::int64_t parts = (n + most - 1) / most;
  return round_up((n + parts - 1) / parts, grain);
}

/// Adds a part of the contraction, `along` of it, to an m x n block of the result.
template <typename In>
TESSERA_TILES void pass(const Source<In>& a, const Source<In>& b, const Sums& sums, std::int64_t m,
                        std::int64_t n, std::int64_t along, std::int64_t height, char* packed_a,
                        char* packed_b) {
  const std::int64_t panel = block_bytes<In>(kWide, along);
  pack_block<Lanes::Across>(b, n, along, packed_b);
  for (std::int64_t top = 0; top < m; top += height) {
    const std::int64_t high = std::min(height, m - top);
    pack_block<Lanes::Along>(Source<In>{a.data + top * a.across, a.across, a.along}, high, along,
                             packed_a);
    for (std::int64_t i = 0; i < high; i += kWide) {
      for (std::int64_t j = 0; j < n; j += kWide)
        multiply_tiles_of<In>(packed_a + i / kWide * panel, packed_b + j / kWide * panel, along,
                              sums.part(top + i, j), std::min(kWide, high - i),
                              std::min(kWide, n - j));
    }
  }
}

}  // namespace

template <typename In, typename Out>
TileGemm<In, Out>::TileGemm(const GemmShape& shape) : shape_(shape) {
  constexpr bool kRounds = std::is_same_v<Out, Bf16>;
  check(tile_unit_usable(TileUnit::Amx), "a product on a unit that this process may not use");
  check(std::min({shape.m, shape.n, shape.k}) > 0, "a product of nothing");
  check(!(kRounds && shape.accumulate), "a product is added to a result of bf16");
  const Blocking most = blocking<In>(shape);
  depth_ = part_of(shape.k, most.depth, kDepth);
  height_ = part_of(shape.m, most.rows, kWide);
  width_ = part_of(shape.n, most.bytes / block_bytes<In>(kWide, depth_) * kWide, kWide);
  const bool passes = depth_ < shape.k;
  finished_ = !passes ? shape.m : kRounds ? kFinishedRounded : kFinished;
  if (passes && kRounds)
    sums_ = std::min(finished_, shape.m) * round_up(std::min(width_, shape.n), kTile);
}

template <typename In, typename Out>
bool TileGemm<In, Out>::pays(std::int64_t m, std::int64_t n, std::int64_t k, int) {
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return std::min({m, n, k}) >= kTile && work >= 32 * 32 * 32;
}

template <typename In, typename Out>
std::int64_t TileGemm<In, Out>::scratch_bytes() const {
  return block_bytes<In>(std::min(width_, shape_.n), depth_) +
         block_bytes<In>(std::min(height_, shape_.m), depth_) +
         sums_ * static_cast<std::int64_t>(sizeof(float));
}

template <typename In, typename Out>
TESSERA_TILES void TileGemm<In, Out>::execute(const In* a, const In* b, Out* c,
                                              void* scratch) const {
  const InUse in_use;
  const GemmShape& s = shape_;
  char* const packed_b = static_cast<char*>(scratch);
  char* const packed_a = packed_b + block_bytes<In>(std::min(width_, s.n), depth_);
  const std::int64_t kept_row = round_up(std::min(width_, s.n), kTile);
  auto* const kept =
      reinterpret_cast<float*>(packed_a + block_bytes<In>(std::min(height_, s.m), depth_));
  for (std::int64_t left = 0; left < s.n; left += width_) {
    for (std::int64_t top = 0; top < s.m; top += finished_) {
      const std::int64_t m = std::min(finished_, s.m - top), n = std::min(width_, s.n - left);
      Out* const result = c + top * s.c_row + left;
      for (std::int64_t k = 0; k < s.k; k += depth_) {
        Sums sums{kept, kept_row, s.accumulate || k > 0};
        if constexpr (std::is_same_v<Out, float>) {
          sums.at = result, sums.row = s.c_row;
        } else if (k + depth_ >= s.k) {
          sums.rounded = result, sums.rounded_row = s.c_row;
        }
        pass<In>({a + top * s.a_row + k * s.a_col, s.a_row, s.a_col},
                 {b + k * s.b_row + left * s.b_col, s.b_col, s.b_row}, sums, m, n,
                 std::min(depth_, s.k - k), height_, packed_a, packed_b);
      }
    }
  }
}

#else

template <typename In, typename Out>
TileGemm<In, Out>::TileGemm(const GemmShape&) {
  check(false, "this processor has no tiles");
}
template <typename In, typename Out>
bool TileGemm<In, Out>::pays(std::int64_t, std::int64_t, std::int64_t, int) {
  return false;
}
template <typename In, typename Out>
std::int64_t TileGemm<In, Out>::scratch_bytes() const {
  return 0;
}
template <typename In, typename Out>
void TileGemm<In, Out>::execute(const In*, const In*, Out*, void*) const {}

#endif

template class TileGemm<float, float>;
template class TileGemm<Bf16, float>;
template class TileGemm<Bf16, Bf16>;

}  // namespace tessera::cpu
