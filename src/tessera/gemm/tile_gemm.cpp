#include "tessera/gemm/tile_gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/gemm/block_passes.h"
#include "tessera/gemm/tile_multiply.h"
#include "tessera/gemm/tile_pack.h"

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

/// Rows of the result that are finished before the next ones, where that takes several passes.
constexpr std::int64_t kFinished = 1024, kFinishedRounded = 512;

/// The whole pass. `height`: rows of A that lie packed at a time.
template <typename In>
TESSERA_TILES void multiply(const BlockPass& part, const Source<In>& a, const Source<In>& b,
                            std::int64_t height) {
  const std::int64_t panel = block_bytes<In>(kWide, part.along);
  pack_block<Lanes::Across>(b, part.cols, part.along, part.packed_b);
  for (std::int64_t top = 0; top < part.rows; top += height) {
    const std::int64_t high = std::min(height, part.rows - top);
    pack_block<Lanes::Along>(Source<In>{a.data + top * a.across, a.across, a.along}, high,
                             part.along, part.packed_a);
    for (std::int64_t i = 0; i < high; i += kWide) {
      for (std::int64_t j = 0; j < part.cols; j += kWide)
        multiply_tiles_of<In>(part.packed_a + i / kWide * panel, part.packed_b + j / kWide * panel,
                              part.along, part.sums.part(top + i, j), std::min(kWide, high - i),
                              std::min(kWide, part.cols - j));
    }
  }
}

}  // namespace

template <typename In, typename Out>
TileGemm<In, Out>::TileGemm(const GemmShape& shape) : shape_(shape) {
  check_product<Out>(shape, TileUnit::Amx);
  const Blocking most = blocking<In>(shape);
  const std::int64_t depth = equal_part(shape.k, most.depth, kDepth);
  const std::int64_t wide = most.bytes / block_bytes<In>(kWide, depth) * kWide;
  blocks_ = blocks_of<Out>(
      shape, depth, equal_part(shape.m, most.rows, kWide), equal_part(shape.n, wide, kWide),
      std::is_same_v<Out, float> ? kFinished : kFinishedRounded, block_bytes<In>);
}

template <typename In, typename Out>
bool TileGemm<In, Out>::pays(std::int64_t m, std::int64_t n, std::int64_t k, int) {
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return std::min({m, n, k}) >= kTile && work >= 32 * 32 * 32;
}

template <typename In, typename Out>
TESSERA_TILES void TileGemm<In, Out>::execute(const In* a, const In* b, Out* c,
                                              void* scratch) const {
  const InUse in_use;
  const GemmShape& s = shape_;
  for_passes(s, blocks_, c, scratch, [&](const BlockPass& part) {
    multiply<In>(part, {a + part.top * s.a_row + part.k * s.a_col, s.a_row, s.a_col},
                 {b + part.k * s.b_row + part.left * s.b_col, s.b_col, s.b_row}, blocks_.height);
  });
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
void TileGemm<In, Out>::execute(const In*, const In*, Out*, void*) const {}

#endif

template class TileGemm<float, float>;
template class TileGemm<Bf16, float>;
template class TileGemm<Bf16, Bf16>;

}  // namespace tessera::cpu
