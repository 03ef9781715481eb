#include "tessera/gemm/panels.h"

#include <algorithm>
#include <cstring>

#include "tessera/gemm/gemm_blocks.h"
#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/gemm/panels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/gemm/vector_product.h"

// A panel of B is two vectors wide and lies [depth][columns]: it stays in the first cache while
// all packed rows of A pass, which stay in the second. The packed columns of B are in the last. A
// panel of A is kTall rows and lies [depth][rows].

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

constexpr Index kHigh = 96;           // rows of A that lie packed: in the second cache
constexpr Index kPackedTogether = 8;  // rows of memory: each may be a page of its own

HWY_INLINE Index panel_width() { return 2 * lanes(); }

/// Columns of B; those that fill the last panel up are zero.
HWY_INLINE void pack_columns(const GemmShape& s, const float* b, Index depth, Index cols,
                             float* to) {
  const D d;
  const Index n = lanes(), wide = panel_width(), whole = cols / wide * wide, rest = cols - whole;
  float* const last = to + whole * depth;
  if (rest > 0) std::fill_n(last, depth * wide, 0.0F);
  if (s.b_col != 1) {
    for (Index j = 0; j < whole; j += wide)
      transpose(b + j * s.b_col, s.b_col, wide, depth, to + j * depth, wide);
    if (rest > 0) transpose(b + whole * s.b_col, s.b_col, rest, depth, last, wide);
    return;
  }
  for (Index first = 0; first < depth; first += kPackedTogether) {
    const Index end = std::min(first + kPackedTogether, depth);
    for (Index j = 0; j < whole; j += wide) {
      const float* from = b + first * s.b_row + j;
      float* panel = to + j * depth + first * wide;
      for (Index k = first; k < end; ++k, from += s.b_row, panel += wide) {
        hn::Store(hn::LoadU(d, from), d, panel);
        hn::Store(hn::LoadU(d, from + n), d, panel + n);
      }
    }
    for (Index k = first; rest > 0 && k < end; ++k)
      std::copy_n(b + k * s.b_row + whole, rest, last + k * wide);
  }
}

/// Rows of A that lie as rows. The last panel has as many as are left.
HWY_INLINE void pack_rows(const float* a, Index a_row, Index rows, Index depth, float* to) {
  for (Index i = 0; i < rows; i += kTall, a += kTall * a_row, to += kTall * depth) {
    const Index high = std::min<Index>(kTall, rows - i);
    Index k = 0;
#if HWY_TARGET <= HWY_AVX2
    // Whole vectors: what one writes beyond its row, the next one overwrites.
    if (i + 8 <= rows) {
      k = depth / 4 * 4;
      transpose_blocks(hn::FixedTag<float, 8>(), a, a_row, 8, k, to, kTall);
    }
#endif
    transpose(a + k, a_row, high, depth - k, to + k * high, high);
  }
}

/// The same of A that lies as columns.
HWY_INLINE void pack_turned_rows(const float* a, Index a_col, Index rows, Index depth, float* to) {
  const Index whole = rows / kTall * kTall, rest = rows - whole;
  for (Index first = 0; first < depth; first += kPackedTogether) {
    const Index end = std::min(first + kPackedTogether, depth);
    for (Index i = 0; i < whole; i += kTall) {
      const float* from = a + first * a_col + i;
      float* panel = to + i * depth + first * kTall;
      Index k = first;
#if HWY_TARGET <= HWY_AVX2
      // Whole vectors: what one writes beyond its row, the next one overwrites.
      const hn::FixedTag<float, 8> d;
      for (; k < std::min(end, i + 8 <= rows ? depth - 1 : 0); ++k, from += a_col, panel += kTall)
        hn::StoreU(hn::LoadU(d, from), d, panel);
#endif
      for (; k < end; ++k, from += a_col, panel += kTall)
        std::memcpy(panel, from, kTall * sizeof(float));
    }
    for (Index k = first; rest > 0 && k < end; ++k)
      std::copy_n(a + k * a_col + whole, rest, to + whole * depth + k * rest);
  }
}

/// A panel of the result whose last columns do not exist.
HWY_INLINE void narrow_block(Product p, Index cols) {
  HWY_ALIGN float whole[kTall * 2 * hn::MaxLanes(D())] = {};
  float* const c = p.c;
  const Index ldc = p.ldc;
  p.c = whole, p.ldc = p.cols;
  for (Index i = 0; p.add && i < p.rows; ++i) std::copy_n(c + i * ldc, cols, whole + i * p.cols);
  columns<2>(p, 0);
  for (Index i = 0; i < p.rows; ++i) std::copy_n(whole + i * p.cols, cols, c + i * ldc);
}

}  // namespace

bool panels_are_fastest() { return HWY_TARGET == HWY_AVX2; }

/// Adds a part of the contraction to columns of the result. No `packed_a`: A's rows are read where
/// they are.
void panel_pass(const GemmShape& s, const float* a, const float* b, float* c, Index cols,
                Index depth, bool add, float* packed_b, float* packed_a) {
  const Index wide = panel_width();
  pack_columns(s, b, depth, cols, packed_b);
  for (Index top = 0; top < s.m; top += kHigh) {
    const Index rows = std::min(kHigh, s.m - top);
    if (s.a_col != 1) {
      pack_turned_rows(a + top, s.a_col, rows, depth, packed_a);
    } else if (packed_a != nullptr) {
      pack_rows(a + top * s.a_row, s.a_row, rows, depth, packed_a);
    }
    for (Index j = 0; j < cols; j += wide) {
      for (Index i = 0; i < rows; i += kTall) {
        const Index high = std::min<Index>(kTall, rows - i);
        float* const to = c + (top + i) * s.c_row + j;
        for (Index r = 0; r < high; ++r) {
          hwy::Prefetch(to + r * s.c_row);
          hwy::Prefetch(to + r * s.c_row + wide - 1);
        }
        const Product p{high,
                        wide,
                        depth,
                        packed_a != nullptr ? packed_a + i * depth : a + (top + i) * s.a_row,
                        packed_a != nullptr ? 1 : s.a_row,
                        packed_a != nullptr ? high : 1,
                        packed_b + j * depth,
                        wide,
                        to,
                        s.c_row,
                        add};
        if (cols - j < wide) {
          narrow_block(p, cols - j);
        } else {
          columns<2>(p, 0);
        }
      }
    }
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(panels_are_fastest);
HWY_EXPORT(panel_pass);

namespace {

// A panel of B of 16 columns takes three quarters of the first cache.
constexpr std::int64_t kDepth = 384, kWidth = 768, kPanel = 32;
constexpr std::int64_t kLeastSize = 32, kLeastRows = 48;
constexpr std::int64_t kMostFloats = 3 << 20;  // of all three matrices, in the last cache together
constexpr std::int64_t kLeastPart = 96;        // rows and columns of a thread, where they are not
constexpr std::int64_t kReadInPlace = 600;     // rows that fewer columns read are not packed
constexpr std::int64_t kPackedRows = 96;       // as kHigh

}  // namespace

PanelGemm::PanelGemm(const GemmShape& shape) : shape_(shape) {
  depth_ = equal_part(shape.k, kDepth, 1);
  width_ = equal_part(shape.n, kWidth, kPanel);
  if (shape.a_col != 1 || shape.n >= kReadInPlace) packed_rows_ = std::min(kPackedRows, shape.m);
}

bool PanelGemm::pays(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  const std::int64_t part = std::min(std::min(m, n), std::max(m, n) / threads);
  return HWY_DYNAMIC_DISPATCH(panels_are_fastest)() && std::min(n, k) >= kLeastSize &&
         m >= kLeastRows && (part >= kLeastPart || m * k + k * n + m * n <= kMostFloats);
}

std::int64_t PanelGemm::scratch_bytes() const {
  return depth_ * (width_ + packed_rows_) * std::int64_t{sizeof(float)};
}

void PanelGemm::execute(const float* a, const float* b, float* c, void* scratch) const {
  const GemmShape& s = shape_;
  float* const packed = static_cast<float*>(scratch);
  float* const rows = packed_rows_ > 0 ? packed + depth_ * width_ : nullptr;
  for (std::int64_t left = 0; left < s.n; left += width_) {
    for (std::int64_t k = 0; k < s.k; k += depth_) {
      HWY_DYNAMIC_DISPATCH(panel_pass)
      (s, a + k * s.a_col, b + k * s.b_row + left * s.b_col, c + left, std::min(width_, s.n - left),
       std::min(depth_, s.k - k), s.accumulate || k > 0, packed, rows);
    }
  }
}

}  // namespace tessera::cpu
#endif
