#include <cmath>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_norm.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/device/cpu/vector_targets.h"
#include "tessera/ops/norm.h"

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

void norm_forward(const NormRows& r, bool centered, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row)
    centered ? forward_row<true>(r, row) : forward_row<false>(r, row);
}

void norm_backward(const NormRows& r, bool centered, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row)
    centered ? backward_row<true>(r, row) : backward_row<false>(r, row);
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(norm_forward);
HWY_EXPORT(norm_backward);

constexpr std::int64_t kGrain = 8192;  // elements that are worth a thread

const float* in(const KernelArgs& args, int i) { return static_cast<const float*>(args.ins[i]); }
float* out(const KernelArgs& args, int i) { return static_cast<float*>(args.outs[i]); }

class NormKernel final : public Kernel {
 public:
  NormKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        centered_(&request.call.op() == &kLayerNorm),
        bias_(request.call.num_in() > 2) {
    rows_.n = request.call.in(1).numel();
    rows_.eps = static_cast<float>(request.call.number("eps"));
    count_ = request.call.out(1).numel();
    parts_ = parts_of(count_, kGrain / std::max<std::int64_t>(rows_.n, 1), pool.threads());
  }
  std::string_view name() const override { return "hwy:norm"; }
  void run(const KernelArgs& args) const override {
    NormRows r = rows_;
    r.x = in(args, 0), r.weight = in(args, 1), r.bias = bias_ ? in(args, 2) : nullptr;
    r.y = out(args, 0), r.mean = centered_ ? out(args, 1) : nullptr,
    r.rstd = out(args, centered_ ? 2 : 1);
    run_parts(*pool_, parts_, count_, [&](int, std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(norm_forward)(r, centered_, begin, end);
    });
  }

 private:
  Pool* pool_;
  bool centered_, bias_;
  NormRows rows_{};
  std::int64_t count_;
  int parts_;
};

/// Each part sums the weights' gradients over its rows; the parts are then added in order.
class NormGradKernel final : public Kernel {
 public:
  NormGradKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        centered_(&request.call.op() == &kLayerNormGrad),
        bias_(request.call.num_out() > 2) {
    rows_.n = request.call.in(2).numel();
    count_ = request.call.in(3).numel();
    parts_ = parts_of(count_, kGrain / std::max<std::int64_t>(rows_.n, 1), pool.threads());
  }
  std::string_view name() const override { return "hwy:norm_grad"; }
  std::int64_t workspace_bytes() const override {
    return 2 * parts_ * rows_.n * std::int64_t{sizeof(float)};
  }
  void run(const KernelArgs& args) const override {
    const std::int64_t n = rows_.n;
    float* partial = static_cast<float*>(args.workspace);
    std::fill_n(partial, 2 * parts_ * n, 0.0f);
    run_parts(*pool_, parts_, count_, [&](int part, std::int64_t begin, std::int64_t end) {
      NormRows r = rows_;
      r.dy = in(args, 0), r.x = in(args, 1), r.weight = in(args, 2);
      r.mean_in = centered_ ? in(args, 3) : nullptr, r.rstd_in = in(args, centered_ ? 4 : 3);
      r.dx = out(args, 0);
      r.dweight = partial + 2 * part * n;
      r.dbias = bias_ ? r.dweight + n : nullptr;
      HWY_DYNAMIC_DISPATCH(norm_backward)(r, centered_, begin, end);
    });
    for (int which = 0; which < (bias_ ? 2 : 1); ++which) {
      for (std::int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int part = 0; part < parts_; ++part) sum += partial[(2 * part + which) * n + i];
        out(args, 1 + which)[i] = sum;
      }
    }
  }

 private:
  Pool* pool_;
  bool centered_, bias_;
  NormRows rows_{};
  std::int64_t count_;
  int parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_norm(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 2)) return nullptr;
  return std::make_unique<NormKernel>(request, pool);
}

std::unique_ptr<Kernel> make_norm_grad(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 3)) return nullptr;
  return std::make_unique<NormGradKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
