#include <cmath>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/gemm/vector_targets.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;

/// Rows of n numbers, elements of type T (vector_load.h). layer_norm has a mean, and perhaps a
/// bias; rms_norm has neither.
template <typename T>
struct NormRows {
  const T *x, *dy;
  const float *weight, *bias, *mean_in, *rstd_in;
  T *y, *dx;
  float *mean, *rstd;      // forward
  float *dweight, *dbias;  // backward: sums over the rows
  std::int64_t n;
  float eps;
};

/// Short rows of 16-bit floats are computed some together: their sums are chains of operations that
/// wait for each other. A processor overlaps those of neighbouring rows by itself where a row takes
/// few operations, as in f32; a long row overlaps with itself. Each row has the bits that it has
/// alone.
constexpr int kTogether = 4;
constexpr std::int64_t kShortRow = 256;

/// Of each of the rows x, x + n ...: the sum, or that of the squares of what lies above `mean`.
template <int kRows, bool kSquares, typename T>
HWY_INLINE void row_sums(D d, const T* x, std::int64_t n, const float* mean, float* sums) {
  constexpr int kSums = 4;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto add = [&](V& sum, V v, int r) HWY_ATTR {
    if constexpr (kSquares) {
      const V above = hn::Sub(v, hn::Set(d, mean[r]));
      sum = hn::MulAdd(above, above, sum);
    } else {
      sum = hn::Add(sum, v);
    }
  };
  V of[kRows][kSums];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) of[r][s] = hn::Zero(d);
  }
  std::int64_t i = 0;
  for (; i + kSums * lanes <= n; i += kSums * lanes) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int s = 0; s < kSums; ++s) add(of[r][s], load_vector(d, x + r * n + i + s * lanes), r);
    }
  }
  for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) add(of[r][0], load_vector(d, x + r * n + i), r);
  }
  if (i < n) {
    const auto rest = static_cast<std::size_t>(n - i);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      V more = of[r][1];
      add(more, load_first(d, x + r * n + i, rest), r);
      of[r][1] = hn::IfThenElse(hn::FirstN(d, rest), more, of[r][1]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    sums[r] = sum_of_lanes(d, hn::Add(hn::Add(of[r][0], of[r][1]), hn::Add(of[r][2], of[r][3])));
  }
}

template <int kRows, bool kCentered, typename T>
void forward_rows(const NormRows<T>& rows, std::int64_t first) {
  const D d;
  const std::int64_t n = rows.n;
  const T* x = rows.x + first * n;
  T* y = rows.y + first * n;
  const float count = static_cast<float>(n);
  float mean[kRows] = {}, rstd[kRows];
  if (kCentered) {
    row_sums<kRows, false>(d, x, n, nullptr, mean);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) mean[r] /= count;
  }
  row_sums<kRows, true>(d, x, n, mean, rstd);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    rstd[r] = 1.0f / std::sqrt(rstd[r] / count + rows.eps);
    if (kCentered) rows.mean[first + r] = mean[r];
    rows.rstd[first + r] = rstd[r];
  }
  each_vector(d, n, [&](auto load, auto store) HWY_ATTR {
    const V weight = load(rows.weight);
    const V bias = rows.bias == nullptr ? hn::Zero(d) : load(rows.bias);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V hat = hn::Mul(hn::Sub(load(x + r * n), hn::Set(d, mean[r])), hn::Set(d, rstd[r]));
      store(rows.bias == nullptr ? hn::Mul(hat, weight) : hn::MulAdd(hat, weight, bias), y + r * n);
    }
  });
}

template <int kRows, bool kCentered, typename T>
void backward_rows(const NormRows<T>& rows, std::int64_t first) {
  const D d;
  const std::int64_t n = rows.n;
  const T *x = rows.x + first * n, *dy = rows.dy + first * n;
  T* dx = rows.dx + first * n;
  V mean[kRows], rstd[kRows], sum_g[kRows], sum_gh[kRows];  // of g = dy * weight, and of g * hat
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    mean[r] = hn::Set(d, kCentered ? rows.mean_in[first + r] : 0.0f);
    rstd[r] = hn::Set(d, rows.rstd_in[first + r]);
    sum_g[r] = sum_gh[r] = hn::Zero(d);
  }
  each_vector(d, n, [&](auto load, auto store) HWY_ATTR {
    const V weight = load(rows.weight);
    V dweight = load(rows.dweight);
    V dbias = rows.dbias == nullptr ? hn::Zero(d) : load(rows.dbias);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {  // zeros beyond the row add nothing
      const V out = load(dy + r * n), g = hn::Mul(out, weight);
      const V hat = hn::Mul(hn::Sub(load(x + r * n), mean[r]), rstd[r]);
      if (kCentered) sum_g[r] = hn::Add(sum_g[r], g);
      sum_gh[r] = hn::MulAdd(g, hat, sum_gh[r]);
      dweight = hn::MulAdd(out, hat, dweight);
      dbias = hn::Add(out, dbias);
    }
    store(dweight, rows.dweight);
    if (rows.dbias != nullptr) store(dbias, rows.dbias);
  });
  const float k = 1.0f / static_cast<float>(n);
  V mean_g[kRows], mean_gh[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    mean_g[r] = hn::Set(d, kCentered ? k * sum_of_lanes(d, sum_g[r]) : 0.0f);
    mean_gh[r] = hn::Set(d, k * sum_of_lanes(d, sum_gh[r]));
  }
  each_vector(d, n, [&](auto load, auto store) HWY_ATTR {
    const V weight = load(rows.weight);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V g = hn::Mul(load(dy + r * n), weight);
      const V hat = hn::Mul(hn::Sub(load(x + r * n), mean[r]), rstd[r]);
      store(hn::Mul(rstd[r], hn::NegMulAdd(hat, mean_gh[r], hn::Sub(g, mean_g[r]))), dx + r * n);
    }
  });
}

const float* in(const TileCall& c, int i) { return static_cast<const float*>(c.in[i]); }

template <bool kCentered, typename T>
void forward(const TileCall& c) {
  NormRows<T> r{};
  r.x = static_cast<const T*>(c.in[0]), r.weight = in(c, 1), r.bias = in(c, 2);
  r.y = static_cast<T*>(c.out), r.mean = kCentered ? static_cast<float*>(c.more[0]) : nullptr;
  r.rstd = static_cast<float*>(c.more[kCentered ? 1 : 0]);
  r.n = c.row, r.eps = *static_cast<const float*>(c.extra);
  const std::int64_t rows = c.n / c.row;
  std::int64_t row = 0;
  if (sizeof(T) == 2 && c.row <= kShortRow) {
    for (; row + kTogether <= rows; row += kTogether) forward_rows<kTogether, kCentered>(r, row);
  }
  for (; row < rows; ++row) forward_rows<1, kCentered>(r, row);
}

template <bool kCentered, typename T>
void backward(const TileCall& c) {
  NormRows<T> r{};
  r.dy = static_cast<const T*>(c.in[0]), r.x = static_cast<const T*>(c.in[1]);
  r.weight = in(c, 2);
  r.mean_in = kCentered ? in(c, 3) : nullptr, r.rstd_in = in(c, kCentered ? 4 : 3);
  r.dx = static_cast<T*>(c.out);
  r.dweight = static_cast<float*>(c.more[0]), r.dbias = static_cast<float*>(c.more[1]);
  r.n = c.row;
  const std::int64_t rows = c.n / c.row;
  std::int64_t row = 0;
  if (sizeof(T) == 2) {  // in f32, two rows together take longer
    for (; row + 2 <= rows; row += 2) backward_rows<2, kCentered>(r, row);
  }
  for (; row < rows; ++row) backward_rows<1, kCentered>(r, row);
}

template <typename T>
TileFunction norm_of(bool grad, bool centered) {
  if (grad) return centered ? backward<true, T> : backward<false, T>;
  return centered ? forward<true, T> : forward<false, T>;
}

}  // namespace

TileFunction find_norm(DType dtype, bool grad, bool centered) {
  return with_stored(dtype, [&](auto zero) { return norm_of<decltype(zero)>(grad, centered); });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(find_norm);

Tiling row_tiling(const OpCall& call) {
  const OpDef* op = &call.op();
  const DType dtype = call.in(0).dtype;
  if (op == &kSum) return {float_tile(Tile::SumOfRows, dtype)};
  const bool forward = op == &kLayerNorm || op == &kRmsNorm;
  const bool grad = op == &kLayerNormGrad || op == &kRmsNormGrad;
  if (!forward && !grad) return {};
  const bool centered = op == &kLayerNorm || op == &kLayerNormGrad;
  const TileFunction function = HWY_DYNAMIC_DISPATCH(find_norm)(dtype, grad, centered);
  if (function == nullptr || grad) return {function};
  return {function, std::make_shared<const float>(static_cast<float>(call.number("eps")))};
}

}  // namespace tessera::cpu
#endif
