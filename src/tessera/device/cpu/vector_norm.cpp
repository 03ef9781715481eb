#include <cmath>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_targets.h"
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

template <bool kCentered, typename T>
void backward_row(const NormRows<T>& r, std::int64_t row) {
  const D d;
  const T *x = r.x + row * r.n, *dy = r.dy + row * r.n;
  T* dx = r.dx + row * r.n;
  const V mu = hn::Set(d, kCentered ? r.mean_in[row] : 0.0f), rstd = hn::Set(d, r.rstd_in[row]);
  V sum_g = hn::Zero(d), sum_gh = sum_g;  // of g = dy * weight, and of g * hat
  each_vector(d, r.n, [&](auto load, auto store) HWY_ATTR {
    const V out = load(dy), g = hn::Mul(out, load(r.weight));  // zeros beyond the row add nothing
    const V hat = hn::Mul(hn::Sub(load(x), mu), rstd);
    if (kCentered) sum_g = hn::Add(sum_g, g);
    sum_gh = hn::MulAdd(g, hat, sum_gh);
    store(hn::MulAdd(out, hat, load(r.dweight)), r.dweight);
    if (r.dbias != nullptr) store(hn::Add(out, load(r.dbias)), r.dbias);
  });
  const float k = 1.0f / static_cast<float>(r.n);
  const V mean_g = hn::Set(d, kCentered ? k * sum_of_lanes(d, sum_g) : 0.0f),
          mean_gh = hn::Set(d, k * sum_of_lanes(d, sum_gh));
  each_vector(d, r.n, [&](auto load, auto store) HWY_ATTR {
    const V g = hn::Mul(load(dy), load(r.weight)), hat = hn::Mul(hn::Sub(load(x), mu), rstd);
    store(hn::Mul(rstd, hn::NegMulAdd(hat, mean_gh, hn::Sub(g, mean_g))), dx);
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
  for (std::int64_t row = 0; row < c.n / c.row; ++row) backward_row<kCentered>(r, row);
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
