#include <cmath>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_norm.h"
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

/// Sum of the row, or of the squares of what lies above `mean`.
template <bool kSquares>
HWY_INLINE float row_sum(D d, const float* x, std::int64_t n, float mean) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V mu = hn::Set(d, mean);
  const auto add = [&](V sum, V v) HWY_ATTR {
    if constexpr (!kSquares) return hn::Add(sum, v);
    const V c = hn::Sub(v, mu);
    return hn::MulAdd(c, c, sum);
  };
  V a = hn::Zero(d), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = add(a, hn::LoadU(d, x + i));
    b = add(b, hn::LoadU(d, x + i + lanes));
    c = add(c, hn::LoadU(d, x + i + 2 * lanes));
    e = add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = add(a, hn::LoadU(d, x + i));
  if (i < n) {
    const auto rest = static_cast<std::size_t>(n - i);
    b = hn::IfThenElse(hn::FirstN(d, rest), add(b, load_first(d, x + i, rest)), b);
  }
  return sum_of_lanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

template <bool kCentered>
void forward_row(const NormRows& r, std::int64_t row) {
  const D d;
  const float* x = r.x + row * r.n;
  float* y = r.y + row * r.n;
  const float count = static_cast<float>(r.n);
  const float mean = kCentered ? row_sum<false>(d, x, r.n, 0) / count : 0.0f;
  const float rstd = 1.0f / std::sqrt(row_sum<true>(d, x, r.n, mean) / count + r.eps);
  if (kCentered) r.mean[row] = mean;
  r.rstd[row] = rstd;
  const V mu = hn::Set(d, mean), scale = hn::Set(d, rstd);
  each_vector(d, r.n, [&](auto load, auto store) HWY_ATTR {
    V v = hn::Mul(hn::Mul(hn::Sub(load(x), mu), scale), load(r.weight));
    if (r.bias != nullptr) v = hn::Add(v, load(r.bias));
    store(v, y);
  });
}

template <bool kCentered>
void backward_row(const NormRows& r, std::int64_t row) {
  const D d;
  const float *x = r.x + row * r.n, *dy = r.dy + row * r.n;
  float* dx = r.dx + row * r.n;
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

}  // namespace

void norm_forward(const NormRows& r, bool centered, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row)
    centered ? forward_row<true>(r, row) : forward_row<false>(r, row);
}

void norm_backward(const NormRows& r, bool centered, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row)
    centered ? backward_row<true>(r, row) : backward_row<false>(r, row);
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(norm_forward);
HWY_EXPORT(norm_backward);

const float* in(const TileCall& c, int i) { return static_cast<const float*>(c.in[i]); }

void norm_tile(const TileCall& c, bool centered) {
  NormRows r{};
  r.x = in(c, 0), r.weight = in(c, 1), r.bias = in(c, 2);
  r.y = static_cast<float*>(c.out), r.mean = centered ? static_cast<float*>(c.more[0]) : nullptr;
  r.rstd = static_cast<float*>(c.more[centered ? 1 : 0]);
  r.n = c.row, r.eps = *static_cast<const float*>(c.extra);
  HWY_DYNAMIC_DISPATCH(norm_forward)(r, centered, c.n / c.row);
}

void norm_grad_tile(const TileCall& c, bool centered) {
  NormRows r{};
  r.dy = in(c, 0), r.x = in(c, 1), r.weight = in(c, 2);
  r.mean_in = centered ? in(c, 3) : nullptr, r.rstd_in = in(c, centered ? 4 : 3);
  r.dx = static_cast<float*>(c.out);
  r.dweight = static_cast<float*>(c.more[0]), r.dbias = static_cast<float*>(c.more[1]);
  r.n = c.row;
  HWY_DYNAMIC_DISPATCH(norm_backward)(r, centered, c.n / c.row);
}

}  // namespace

Tiling row_tiling(const OpCall& call) {
  const OpDef* op = &call.op();
  if (call.in(0).dtype != DType::F32) return {};
  if (op == &kLayerNorm || op == &kRmsNorm) {
    const auto eps = std::make_shared<const float>(static_cast<float>(call.number("eps")));
    return op == &kLayerNorm ? Tiling{[](const TileCall& c) { norm_tile(c, true); }, eps}
                             : Tiling{[](const TileCall& c) { norm_tile(c, false); }, eps};
  }
  if (op == &kLayerNormGrad) return {[](const TileCall& c) { norm_grad_tile(c, true); }};
  if (op == &kRmsNormGrad) return {[](const TileCall& c) { norm_grad_tile(c, false); }};
  if (op == &kSum) return {f32_tile(Tile::SumOfRows)};
  return {};
}

}  // namespace tessera::cpu
#endif
