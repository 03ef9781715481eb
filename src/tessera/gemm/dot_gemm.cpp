#include "tessera/gemm/dot_gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/gemm/block_passes.h"
#include "tessera/gemm/dot_pack.h"
#include "tessera/gemm/dot_rows.h"
#include "tessera/gemm/lines_ahead.h"
#include "tessera/gemm/tile_unit.h"

namespace tessera::cpu {

#if defined(__x86_64__) && defined(__linux__)

namespace {

/// A pass. All of its B lies packed.
struct DotPart : BlockPass {
  PairSource a;
  LinesAhead next_b;  // what is packed next
};

LinesAhead lines_of(const PairSource& from, std::int64_t across, std::int64_t along) {
  constexpr std::int64_t kBytes = sizeof(Bf16);
  if (from.along == 1) return {from.data, across, along * kBytes, from.across * kBytes};
  return {from.data, along, across * kBytes, from.along * kBytes};
}

/// The sums of a block, where the product is added to them.
LinesAhead lines_of(const Sums& sums, std::int64_t pairs) {
  if (!sums.accumulate) return {};
  constexpr std::int64_t kBytes = sizeof(float);
  return LinesAhead(sums.at, kDotRows, kAcross * kBytes, sums.row * kBytes).over(fetches(pairs));
}

/// A block of kDotRows rows and one panel, of which `high` rows behind the first `skipped` are
/// wanted, and `n` columns.
template <RowsOfA rows>
TESSERA_TILES void multiply_dots_of(const DotOperand& a, const char* b, std::int64_t along,
                                    const Sums& c, std::int64_t skipped, std::int64_t high,
                                    std::int64_t n, DotsAhead& ahead) {
  const bool wide = n > kLanes;
  const auto run = wide ? dot_rows<rows, 2> : dot_rows<rows, 1>;
  const std::int64_t cols = wide ? kAcross : kLanes, pairs = (along + 1) / 2;
  if (high == kDotRows && n == cols) return run(a, b, pairs, c, ahead);
  alignas(64) float whole[kDotRows * kAcross];
  float* const wanted = whole + skipped * cols;
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  if (c.accumulate) {
    std::memset(whole, 0, sizeof(whole));
    for (std::int64_t i = 0; i < high; ++i) std::memcpy(wanted + i * cols, c.at + i * c.row, bytes);
  }
  run(a, b, pairs, {whole, cols, c.accumulate}, ahead);
  for (std::int64_t i = 0; i < high; ++i) {
    if (c.rounded == nullptr) {
      std::memcpy(c.at + i * c.row, wanted + i * cols, bytes);
    } else {
      round_row(wanted + i * cols, c.rounded + i * c.rounded_row, n);
    }
  }
}

/// B lies in the second cache, and rows of A come by, where they lie. There are kDotRows at least:
/// the last ones are computed with those before them.
TESSERA_TILES void multiply_in_place(const DotPart& part) {
  const std::int64_t panels = (part.cols + kAcross - 1) / kAcross, pairs = (part.along + 1) / 2;
  const std::int64_t blocks = (part.rows + kDotRows - 1) / kDotRows * panels;
  const auto rows_from = [&](std::int64_t i) { return part.a.data + i * part.a.across; };
  DotsAhead ahead{part.next_b.over(blocks * fetches(pairs)), {}, {}};
  for (std::int64_t i = 0; i < part.rows; i += kDotRows) {
    const std::int64_t high = std::min(kDotRows, part.rows - i), skipped = kDotRows - high;
    const DotOperand a{reinterpret_cast<const char*>(rows_from(i - skipped)),
                       part.a.across * std::int64_t{sizeof(Bf16)}, 0};
    const std::int64_t below = std::min(kDotRows, part.rows - i - high);
    if (below > 0)
      ahead.a = lines_of({rows_from(i + high), part.a.across, 1}, below, part.along)
                    .over(panels * fetches(pairs));
    for (std::int64_t j = 0; j < part.cols; j += kAcross) {
      if (j + kAcross < part.cols) ahead.sums = lines_of(part.sums.part(i, j + kAcross), pairs);
      multiply_dots_of<RowsOfA::InPlace>(a, part.packed_b + packed_bytes(j, part.along), part.along,
                                         part.sums.part(i, j), skipped, high,
                                         std::min(kAcross, part.cols - j), ahead);
    }
  }
}

/// `height` rows of A at a time are packed and lie in the second cache, and panels of B come by:
/// so A is packed few times.
TESSERA_TILES void multiply_packed(const DotPart& part, std::int64_t height) {
  const std::int64_t panels = (part.cols + kAcross - 1) / kAcross, pairs = (part.along + 1) / 2;
  const std::int64_t blocks = (part.rows + kDotRows - 1) / kDotRows * panels;
  DotsAhead ahead{part.next_b.over(blocks * fetches(pairs)), {}, {}};
  for (std::int64_t top = 0; top < part.rows; top += height) {
    const std::int64_t high = std::min(height, part.rows - top);
    pack_pairs({part.a.data + top * part.a.across, part.a.across, part.a.along}, high, part.along,
               part.packed_a);
    if (const std::int64_t next = top + high; next < part.rows)
      ahead.a = lines_of({part.a.data + next * part.a.across, part.a.across, part.a.along},
                         std::min(height, part.rows - next), part.along)
                    .over((high + kDotRows - 1) / kDotRows * panels * fetches(pairs));
    for (std::int64_t j = 0; j < part.cols; j += kAcross) {
      for (std::int64_t i = 0; i < high; i += kDotRows) {
        const bool last = i + kDotRows >= high;
        ahead.sums = lines_of(
            part.sums.part(top + (last ? 0 : i + kDotRows), last ? j + kAcross : j), pairs);
        const std::int64_t in_panel = i % kAcross;
        const DotOperand a{part.packed_a + packed_bytes(i - in_panel, part.along) + in_panel * 4, 4,
                           pair_bytes(high, i)};
        multiply_dots_of<RowsOfA::Packed>(
            a, part.packed_b + packed_bytes(j, part.along), part.along, part.sums.part(top + i, j),
            0, std::min(kDotRows, high - i), std::min(kAcross, part.cols - j), ahead);
      }
    }
  }
}

/// Bytes of B that lie packed: half of a core's second cache, or, where A lies there, so many that
/// A is packed few times.
constexpr std::int64_t kBytesInPlace = 512 << 10, kBytesPacked = 2 << 20;
/// Terms of the contraction, and rows of a packed A.
constexpr std::int64_t kDeepest = 1024, kHighest = 128;
/// Rows of the result that are finished before the next ones, where that takes several passes.
constexpr std::int64_t kMostSums = 1024;

}  // namespace

template <typename Out>
DotGemm<Out>::DotGemm(const GemmShape& shape) : shape_(shape) {
  check_product<Out>(shape, TileUnit::Dots);
  packs_a_ = shape.a_col != 1 || shape.k % 2 != 0 || shape.m < kDotRows;
  const std::int64_t depth = equal_part(shape.k, kDeepest, 2 * kLanes);
  const std::int64_t wide =
      (packs_a_ ? kBytesPacked : kBytesInPlace) / packed_bytes(kAcross, depth) * kAcross;
  blocks_ = blocks_of<Out>(shape, depth, packs_a_ ? equal_part(shape.m, kHighest, kAcross) : 0,
                           equal_part(shape.n, wide, kAcross), kMostSums, packed_bytes);
}

template <typename Out>
bool DotGemm<Out>::pays(std::int64_t m, std::int64_t n, std::int64_t k, int) {
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return std::min(m, n) > kDotRows && work >= kLanes * kLanes * kLanes;
}

template <typename Out>
TESSERA_TILES void DotGemm<Out>::execute(const Bf16* a, const Bf16* b, Out* c,
                                         void* scratch) const {
  const GemmShape& s = shape_;
  const auto b_from = [&](std::int64_t k, std::int64_t left) -> PairSource {
    return {b + k * s.b_row + left * s.b_col, s.b_col, s.b_row};
  };
  const auto next_b = [&](const BlockPass& pass) -> LinesAhead {
    const bool deeper = pass.k + pass.along < s.k, below = pass.top + pass.rows < s.m;
    const std::int64_t k = deeper ? pass.k + pass.along : 0,
                       left = deeper || below ? pass.left : pass.left + pass.cols;
    if (left >= s.n) return {};
    return lines_of(b_from(k, left), std::min(blocks_.width, s.n - left),
                    std::min(blocks_.depth, s.k - k));
  };
  for_passes(s, blocks_, c, scratch, [&](const BlockPass& pass) {
    pack_pairs(b_from(pass.k, pass.left), pass.cols, pass.along, pass.packed_b);
    DotPart part{pass, {a + pass.top * s.a_row + pass.k * s.a_col, s.a_row, s.a_col}, next_b(pass)};
    packs_a_ ? multiply_packed(part, blocks_.height) : multiply_in_place(part);
  });
}

#else

template <typename Out>
DotGemm<Out>::DotGemm(const GemmShape&) {
  check(false, "this processor has no products of bf16");
}
template <typename Out>
bool DotGemm<Out>::pays(std::int64_t, std::int64_t, std::int64_t, int) {
  return false;
}
template <typename Out>
void DotGemm<Out>::execute(const Bf16*, const Bf16*, Out*, void*) const {}

#endif

template class DotGemm<float>;
template class DotGemm<Bf16>;

}  // namespace tessera::cpu
