#include <cmath>
#include <limits>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/device/cpu/vector_targets.h"
#include "tessera/ops/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_softmax.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;
constexpr std::int64_t kSpan = 4096;  // elements that stay in the first cache between two passes

/// The largest element; NaN is passed over here and found again in the sum.
HWY_INLINE float row_max(D d, const float* x, std::int64_t n) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  V a = lowest, b = lowest;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(hn::LoadU(d, x + i), a);  // x86 gives the second where one is NaN
    b = hn::Max(hn::LoadU(d, x + i + lanes), b);
  }
  float top = hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
  for (; i < n; ++i) top = std::max(top, x[i]);
  return top;
}

/// The sum of e^(x - top); the terms may be stored at y.
template <bool kStore>
HWY_INLINE float exp_sum(D d, const float* x, float top, float* y, std::int64_t n) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V shift = hn::Set(d, top);
  V a = hn::Zero(d), b = a;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V u = exp_of(d, hn::Sub(hn::LoadU(d, x + i), shift));
    const V w = exp_of(d, hn::Sub(hn::LoadU(d, x + i + lanes), shift));
    if constexpr (kStore) hn::StoreU(u, d, y + i), hn::StoreU(w, d, y + i + lanes);
    a = hn::Add(a, u), b = hn::Add(b, w);
  }
  for (; i < n; i += lanes) {
    const std::size_t rest = static_cast<std::size_t>(std::min(lanes, n - i));
    const bool whole = static_cast<std::int64_t>(rest) == lanes;
    V u = exp_of(d, hn::Sub(whole ? hn::LoadU(d, x + i) : load_first(d, x + i, rest), shift));
    if constexpr (kStore) whole ? hn::StoreU(u, d, y + i) : store_first(d, u, y + i, rest);
    if (!whole) u = hn::IfThenElseZero(hn::FirstN(d, rest), u);
    a = hn::Add(a, u);
  }
  return sum_of_lanes(d, hn::Add(a, b));
}

/// As exp_sum, of a row of any length: spans are added in f32, their sums in f64.
HWY_INLINE float long_exp_sum(D d, const float* x, float top, float* y, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; i += kSpan) {
    total += exp_sum<true>(d, x + i, top, y + i, std::min(kSpan, n - i));
  }
  return static_cast<float>(total);
}

}  // namespace

void softmax_rows(const float* x, float* y, std::int64_t n, std::int64_t begin, std::int64_t end) {
  const D d;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* in = x + row * n;
    float* out = y + row * n;
    const float sum = long_exp_sum(d, in, row_max(d, in, n), out, n);
    const V scale = hn::Set(d, 1.0f / sum);
    each_vector(d, n,
                [&](auto load, auto store) HWY_ATTR { store(hn::Mul(load(out), scale), out); });
  }
}

/// log(sum(e^x)) in one pass over memory: spans that fit the first cache, their sums joined in f64
/// under the largest element so far.
HWY_INLINE float log_sum_exp(D d, const float* x, std::int64_t n) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float top = -kInfinity;
  double total = 0;
  for (std::int64_t i = 0; i < n; i += kSpan) {
    const std::int64_t count = std::min(kSpan, n - i);
    const float larger = std::max(top, row_max(d, x + i, count));
    if (larger == -kInfinity) continue;  // e^-infinity adds nothing
    total = total * std::exp(static_cast<double>(top) - larger) +
            exp_sum<false>(d, x + i, larger, nullptr, count);
    top = larger;
  }
  return top + static_cast<float>(std::log(total));
}

void cross_entropy_rows(const float* logits, const std::int32_t* labels, std::int64_t ignore,
                        float* loss, float* logsumexp, std::int64_t n, std::int64_t begin,
                        std::int64_t end) {
  const D d;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* x = logits + row * n;
    logsumexp[row] = log_sum_exp(d, x, n);
    const std::int64_t label = labels[row];
    const float target = label >= 0 && label < n ? x[label] : 0.0f;
    loss[row] = label == ignore ? 0.0f : logsumexp[row] - target;
  }
}

/// dlogits = dloss (softmax - one_hot); `first` is the vocabulary's index of column 0.
void cross_entropy_grad_rows(const float* logits, const std::int32_t* labels, std::int64_t ignore,
                             const float* logsumexp, const float* dloss, std::int64_t first,
                             float* dlogits, std::int64_t n, std::int64_t begin, std::int64_t end) {
  const D d;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* x = logits + row * n;
    float* dx = dlogits + row * n;
    if (labels[row] == ignore) {
      std::fill_n(dx, n, 0.0f);
      continue;
    }
    const V shift = hn::Set(d, logsumexp[row]), scale = hn::Set(d, dloss[row]);
    each_vector(d, n, [&](auto load, auto store) HWY_ATTR {
      store(hn::Mul(scale, exp_of(d, hn::Sub(load(x), shift))), dx);
    });
    const std::int64_t label = labels[row] - first;
    if (label >= 0 && label < n) dx[label] -= dloss[row];
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(cross_entropy_rows);
HWY_EXPORT(cross_entropy_grad_rows);

constexpr std::int64_t kGrain = 4096;  // elements that are worth a thread

const float* in(const KernelArgs& args, int i) { return static_cast<const float*>(args.ins[i]); }
const std::int32_t* labels_of(const KernelArgs& args) {
  return static_cast<const std::int32_t*>(args.ins[1]);
}
float* out(const KernelArgs& args, int i) { return static_cast<float*>(args.outs[i]); }

/// The rows of operand 0, split over threads.
class RowKernel : public Kernel {
 public:
  RowKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool), n_(request.call.in(0).shape.back()) {
    rows_ = n_ == 0 ? 0 : request.call.in(0).numel() / n_;
    parts_ = parts_of(rows_, kGrain / std::max<std::int64_t>(n_, 1), pool.threads());
  }

 protected:
  template <typename Task>
  void each_part(const Task& task) const {
    run_parts(*pool_, parts_, rows_,
              [&](int, std::int64_t begin, std::int64_t end) { task(begin, end); });
  }
  Pool* pool_;
  std::int64_t n_, rows_;
  int parts_;
};

class SoftmaxKernel final : public RowKernel {
 public:
  using RowKernel::RowKernel;
  std::string_view name() const override { return "hwy:softmax"; }
  void run(const KernelArgs& args) const override {
    each_part([&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(softmax_rows)(in(args, 0), out(args, 0), n_, begin, end);
    });
  }
};

class CrossEntropyKernel final : public RowKernel {
 public:
  CrossEntropyKernel(const KernelRequest& request, Pool& pool)
      : RowKernel(request, pool), ignore_(request.call.integer("ignore_index")) {}
  std::string_view name() const override { return "hwy:cross_entropy"; }
  void run(const KernelArgs& args) const override {
    each_part([&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(cross_entropy_rows)
      (in(args, 0), labels_of(args), ignore_, out(args, 0), out(args, 1), n_, begin, end);
    });
  }

 private:
  std::int64_t ignore_;
};

class CrossEntropyGradKernel final : public RowKernel {
 public:
  CrossEntropyGradKernel(const KernelRequest& request, Pool& pool)
      : RowKernel(request, pool),
        ignore_(request.call.integer("ignore_index")),
        first_(in_shard(request, 0).offset.back()) {}
  std::string_view name() const override { return "hwy:cross_entropy_grad"; }
  void run(const KernelArgs& args) const override {
    each_part([&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(cross_entropy_grad_rows)
      (in(args, 0), labels_of(args), ignore_, in(args, 2), in(args, 3), first_, out(args, 0), n_,
       begin, end);
    });
  }

 private:
  std::int64_t ignore_, first_;
};

}  // namespace

std::unique_ptr<Kernel> make_softmax(const KernelRequest& request, Pool& pool) {
  const bool last = request.call.integer("dim") == request.call.in(0).ndim() - 1;
  if (!last || !all_dense(request) || !first_are_f32(request, 1)) return nullptr;
  return std::make_unique<SoftmaxKernel>(request, pool);
}

std::unique_ptr<Kernel> make_cross_entropy(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 1)) return nullptr;
  return std::make_unique<CrossEntropyKernel>(request, pool);
}

std::unique_ptr<Kernel> make_cross_entropy_grad(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 1)) return nullptr;
  return std::make_unique<CrossEntropyGradKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
