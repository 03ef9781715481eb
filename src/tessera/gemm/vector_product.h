// Small products whose sums stay in registers, and transposing, compiled once per instruction set:
// included after hwy/highway.h, inside foreach_target.

#if defined(TESSERA_VECTOR_PRODUCT) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_PRODUCT
#undef TESSERA_VECTOR_PRODUCT
#else
#define TESSERA_VECTOR_PRODUCT
#endif

#include <cstdint>
#include <utility>

#include "tessera/gemm/fma_block.h"
#include "tessera/gemm/lines_ahead.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;
using Index = std::int64_t;

HWY_INLINE Index lanes() { return static_cast<Index>(hn::Lanes(D())); }

constexpr int kTall = 6;  // rows of a block of 16 registers

/// A [rows x depth] block of A at strides, one of which is 1; B [depth x cols] and C in rows of ldb
/// and ldc floats.
struct Product {
  Index rows, cols, depth;  // cols: whole vectors
  const float* a;
  Index a_row, a_col;
  const float* b;
  Index ldb;
  float* c;
  Index ldc;
  bool add;
  ListAhead* ahead = nullptr;  // what is fetched meanwhile
};

/// kRows x kVectors accumulators in registers.
template <int kRows, int kVectors, std::size_t... I, std::size_t... C>
HWY_INLINE void register_block(const Product& p, const float* a, const float* b, float* c,
                               std::index_sequence<I...>, std::index_sequence<C...>) {
  const D d;
  const Index n = lanes(), a_row = p.a_row, a_col = p.a_col, ldb = p.ldb, ldc = p.ldc,
              depth = p.depth;
  V sum[] = {(static_cast<void>(I), hn::Zero(d))...};
  for (Index k = 0; k < depth; ++k, a += a_col, b += ldb) {
    const V columns[] = {hn::LoadU(d, b + static_cast<Index>(C) * n)...};
    V row;  // one at a time: registers are full of sums
    ((row = I % kVectors == 0 ? hn::Set(d, a[static_cast<Index>(I / kVectors) * a_row]) : row,
      sum[I] = hn::MulAdd(row, columns[I % kVectors], sum[I])),
     ...);
  }
  const auto at = [&](std::size_t i) {
    return c + static_cast<Index>(i / kVectors) * ldc + static_cast<Index>(i % kVectors) * n;
  };
  if (p.add) ((sum[I] = hn::Add(sum[I], hn::LoadU(d, at(I)))), ...);
  (hn::StoreU(sum[I], d, at(I)), ...);
}

template <int kRows, int kVectors>
HWY_INLINE void register_block(const Product& p, Index row, Index col) {
  const float *a = p.a + row * p.a_row, *b = p.b + col;
  float* const c = p.c + row * p.ldc + col;
#if HWY_TARGET == HWY_AVX2 && !HWY_IS_ASAN && !HWY_IS_TSAN  // which do not see into assembly
  if constexpr (kRows == kTall && kVectors == 2)
    fma_block(p.depth, a, p.a_row, p.a_col, b, p.ldb, c, p.ldc, p.add);
  else
#endif
    register_block<kRows, kVectors>(p, a, b, c, std::make_index_sequence<kRows * kVectors>(),
                                    std::make_index_sequence<kVectors>());
}

template <int kVectors>
HWY_INLINE void columns(const Product& p, Index col) {
  Index row = 0;
#if HWY_TARGET <= HWY_AVX3
  // Sums in most of the 32 registers; one vector wide, rows are halves of the smallest tile of
  // keys.
  constexpr int kRows = kVectors == 4 ? 6 : 8;
#else
  constexpr int kRows = kTall;  // twelve sums, two columns and a row in 16 registers
#endif
  for (; row + kRows <= p.rows; row += kRows) {
    if (p.ahead != nullptr) p.ahead->fetch();
    register_block<kRows, kVectors>(p, row, col);
  }
  for (; row + 4 <= p.rows; row += 4) register_block<4, kVectors>(p, row, col);
  if (row + 2 <= p.rows) register_block<2, kVectors>(p, row, col), row += 2;
  if (row < p.rows) register_block<1, kVectors>(p, row, col);
}

/// C = A B, or C += A B.
HWY_INLINE void multiply(const Product& p) {
  const Index n = lanes();
  Index col = 0;
#if HWY_TARGET <= HWY_AVX3
  for (; col + 4 * n <= p.cols; col += 4 * n) columns<4>(p, col);
  if (col + 3 * n <= p.cols) columns<3>(p, col), col += 3 * n;
#endif
  for (; col + 2 * n <= p.cols; col += 2 * n) columns<2>(p, col);
  for (; col < p.cols; col += n) columns<1>(p, col);
}

#if HWY_TARGET != HWY_SCALAR
/// Four columns of as many rows as there are lanes: block b has those of row 4 b.
template <class B>
HWY_INLINE hn::VFromD<B> stacked(B d, const float* from, Index ldf) {
  if constexpr (hn::MaxLanes(B()) > 4) {
    const hn::Half<B> half;
    const Index rows = static_cast<Index>(hn::Lanes(half));
    return hn::Combine(d, stacked(half, from + rows * ldf, ldf), stacked(half, from, ldf));
  } else {
    return hn::LoadU(d, from);
  }
}

/// to[c][r] = from[r][c] for whole vectors of rows and fours of columns.
template <class B>
HWY_INLINE void transpose_blocks(B d, const float* from, Index ldf, Index rows, Index cols,
                                 float* to, Index ldt) {
  for (Index r = 0; r < rows; r += static_cast<Index>(hn::Lanes(d))) {
    for (Index c = 0; c < cols; c += 4) {
      const float* const f = from + r * ldf + c;
      float* const t = to + c * ldt + r;
      const auto r0 = stacked(d, f, ldf), r1 = stacked(d, f + ldf, ldf),
                 r2 = stacked(d, f + 2 * ldf, ldf), r3 = stacked(d, f + 3 * ldf, ldf);
      const auto low02 = hn::InterleaveLower(d, r0, r2), high02 = hn::InterleaveUpper(d, r0, r2),
                 low13 = hn::InterleaveLower(d, r1, r3), high13 = hn::InterleaveUpper(d, r1, r3);
      hn::StoreU(hn::InterleaveLower(d, low02, low13), d, t);
      hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, t + ldt);
      hn::StoreU(hn::InterleaveLower(d, high02, high13), d, t + 2 * ldt);
      hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, t + 3 * ldt);
    }
  }
}
#endif

/// to[c][r] = from[r][c].
HWY_INLINE void transpose(const float* from, Index ldf, Index rows, Index cols, float* to,
                          Index ldt) {
  Index even = 0;  // rows of which only columns are left
  const Index fours = cols / 4 * 4;
#if HWY_TARGET != HWY_SCALAR
  const Index wide = rows / lanes() * lanes();
  even = rows / 4 * 4;
  transpose_blocks(D(), from, ldf, wide, fours, to, ldt);
  transpose_blocks(hn::Full128<float>(), from + wide * ldf, ldf, even - wide, fours, to + wide,
                   ldt);
#endif
  for (Index r = 0; r < rows; ++r) {
    for (Index c = r < even ? fours : 0; c < cols; ++c) to[c * ldt + r] = from[r * ldf + c];
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
