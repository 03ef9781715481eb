// Products with few rows, as when text is generated token by token: the time is that of reading the
// weights once. Lanes run along the contraction; a thread has some rows of the weights, each read
// in one go for all rows of x. Every sum is made by one thread in one order: bits do not depend on
// how many there are.

#include "tessera/device/cpu/few_rows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tessera/device/cpu/matmul.h"
#include "tessera/gemm/vector_targets.h"
#include "tessera/ops/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/few_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;
using Index = std::int64_t;

/// y[i][j] = x[i] . w[j] for kRows rows of x and kColumns rows of w. Sum I is that of row
/// I / kColumns and column I % kColumns; folds keep all of them in registers.
template <int kRows, int kColumns, std::size_t... I, std::size_t... J>
HWY_INLINE void dot_block(const GemmShape& s, const float* x, const float* w, float* y,
                          std::index_sequence<I...>, std::index_sequence<J...>) {
  const D d;
  const Index n = static_cast<Index>(hn::Lanes(d)), a_row = s.a_row, b_col = s.b_col, k = s.k;
  V sums[kRows * kColumns];
  ((sums[I] = hn::Zero(d)), ...);
  Index c = 0;
  for (; c + n <= k; c += n) {
    const V weights[] = {hn::LoadU(d, w + static_cast<Index>(J) * b_col + c)...};
    V row;  // one at a time: registers are full of sums
    ((row =
          I % kColumns == 0 ? hn::LoadU(d, x + static_cast<Index>(I / kColumns) * a_row + c) : row,
      sums[I] = hn::MulAdd(row, weights[I % kColumns], sums[I])),
     ...);
  }
  float totals[kRows * kColumns];
  ((totals[I] = hn::GetLane(hn::SumOfLanes(d, sums[I]))), ...);
  for (Index i = 0; i < kRows; ++i) {
    for (Index j = 0; j < kColumns; ++j) {
      float sum = totals[i * kColumns + j];
      for (Index rest = c; rest < k; ++rest) sum += x[i * a_row + rest] * w[j * b_col + rest];
      y[i * s.c_row + j] = sum;
    }
  }
}

template <int kRows, int kColumns>
HWY_INLINE void dot_block(const GemmShape& s, const float* x, const float* w, float* y) {
  dot_block<kRows, kColumns>(s, x, w, y, std::make_index_sequence<kRows * kColumns>(),
                             std::make_index_sequence<kColumns>());
}

template <int kRows>
HWY_INLINE void dot_rows(const GemmShape& s, const float* x, const float* w, float* y, Index begin,
                         Index end) {
  // Sums in most of the registers.
  constexpr int kColumns = kRows <= 4 ? 4 : HWY_TARGET <= HWY_AVX3 ? 3 : 2;
  Index j = begin;
  for (; j + kColumns <= end; j += kColumns)
    dot_block<kRows, kColumns>(s, x, w + j * s.b_col, y + j);
  for (; j < end; ++j) dot_block<kRows, 1>(s, x, w + j * s.b_col, y + j);
}

}  // namespace

/// Columns [begin, end) of y.
void few_rows(const GemmShape& s, const float* x, const float* w, float* y, Index begin,
              Index end) {
  using Rows = void (*)(const GemmShape&, const float*, const float*, float*, Index, Index);
  constexpr Rows kRows[] = {dot_rows<1>, dot_rows<2>, dot_rows<3>, dot_rows<4>,
                            dot_rows<5>, dot_rows<6>, dot_rows<7>, dot_rows<8>};
  kRows[s.m - 1](s, x, w, y, begin, end);
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(few_rows);

namespace {

constexpr std::int64_t kMostRows = 8;
constexpr std::int64_t kLeastWeights = 1 << 16;  // fewer lie in a cache: other products are as fast
constexpr std::int64_t kThreadWeights = 1 << 14;  // worth a thread

class FewRows final : public Kernel {
 public:
  FewRows(const GemmShape& shape, Pool& pool) : shape_(shape), pool_(pool) {}
  std::string_view name() const override { return "hwy:few_rows"; }

  void run(const KernelArgs& args) const override {
    const auto *x = static_cast<const float*>(args.ins[0]),
               *w = static_cast<const float*>(args.ins[1]);
    auto* const y = static_cast<float*>(args.outs[0]);
    // A multiple of the columns of every block: which thread makes one changes nothing.
    const std::int64_t grain = (kThreadWeights / shape_.k + 16) / 16 * 16;
    pool_.split(shape_.n, grain, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(few_rows)(shape_, x, w, y, begin, end);
    });
  }

 private:
  GemmShape shape_;
  Pool& pool_;
};

/// Rows of x and rows of weights that lie together: x [m, k] times w [n, k].
std::unique_ptr<Kernel> make_few_rows(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  if (!call.in(0).layout.plain() || !call.in(1).layout.plain()) return nullptr;
  const std::optional<SingleProduct> product = single_product(request);
  if (!product || product->swapped) return nullptr;
  const GemmShape& s = product->shape;
  const bool accepted = s.m <= kMostRows && s.a_col == 1 && s.b_row == 1 && s.b_col >= s.k &&
                        s.n * s.k >= kLeastWeights;
  return accepted ? std::make_unique<FewRows>(s, pool) : nullptr;
}

constexpr std::array<KernelEntry, 1> kFewRows = {{{&kMatmul, make_few_rows}}};

}  // namespace

std::span<const KernelEntry> few_rows_kernels() { return kFewRows; }

}  // namespace tessera::cpu
#endif
