#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tessera/base/round_up.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/device/cpu/vector_softmax.h"
#include "tessera/gemm/vector_targets.h"
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
template <typename T>
HWY_INLINE float row_max(D d, const T* x, std::int64_t n) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  V a = lowest, b = lowest;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(load_vector(d, x + i), a);  // x86 gives the second where one is NaN
    b = hn::Max(load_vector(d, x + i + lanes), b);
  }
  float top = hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
  for (; i < n; ++i) top = std::max(top, load_one(x + i));
  return top;
}

/// The sum of e^(x - top); the terms may be stored at y.
template <bool kStore, typename T>
HWY_INLINE float exp_sum(D d, const T* x, float top, float* y, std::int64_t n) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V shift = hn::Set(d, top);
  V a = hn::Zero(d), b = a;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V u = exp_of(d, hn::Sub(load_vector(d, x + i), shift));
    const V w = exp_of(d, hn::Sub(load_vector(d, x + i + lanes), shift));
    if constexpr (kStore) hn::StoreU(u, d, y + i), hn::StoreU(w, d, y + i + lanes);
    a = hn::Add(a, u), b = hn::Add(b, w);
  }
  for (; i < n; i += lanes) {
    const std::size_t rest = static_cast<std::size_t>(std::min(lanes, n - i));
    const bool whole = static_cast<std::int64_t>(rest) == lanes;
    V u = exp_of(d, hn::Sub(whole ? load_vector(d, x + i) : load_first(d, x + i, rest), shift));
    if constexpr (kStore) whole ? hn::StoreU(u, d, y + i) : store_first(d, u, y + i, rest);
    if (!whole) u = hn::IfThenElseZero(hn::FirstN(d, rest), u);
    a = hn::Add(a, u);
  }
  return sum_of_lanes(d, hn::Add(a, b));
}

/// As exp_sum, of a row of any length: spans are added in f32, their sums in f64.
template <typename T>
HWY_INLINE float long_exp_sum(D d, const T* x, float top, float* y, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; i += kSpan) {
    total += exp_sum<true>(d, x + i, top, y + i, std::min(kSpan, n - i));
  }
  return static_cast<float>(total);
}

/// The terms of a row of 16 bits lie in `terms` until they are scaled: each result is rounded once.
template <typename T>
void softmax_rows(const RowSpan& rows, const void* x, void* y, float* terms) {
  const D d;
  const std::int64_t n = rows.n;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* in = static_cast<const T*>(x) + row * n;
    T* out = static_cast<T*>(y) + row * n;
    float* made = terms;
    if constexpr (std::is_same_v<T, float>) made = out;
    const float sum = long_exp_sum(d, in, row_max(d, in, n), made, n);
    const V scale = hn::Set(d, 1.0f / sum);
    store_each<false>(d, n, made, out, [&](V v) HWY_ATTR { return hn::Mul(v, scale); });
  }
}

/// log(sum(e^x)) in one pass over memory: spans that fit the first cache, their sums joined in f64
/// under the largest element so far.
template <typename T>
HWY_INLINE float log_sum_exp(D d, const T* x, std::int64_t n) {
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

template <typename T>
void cross_entropy_rows(const RowSpan& rows, const void* logits, const Labels& labels, float* loss,
                        float* logsumexp) {
  const D d;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* x = static_cast<const T*>(logits) + row * rows.n;
    logsumexp[row] = log_sum_exp(d, x, rows.n);
    const std::int64_t label = labels.at[row];
    const float target = label >= 0 && label < rows.n ? load_one(x + label) : 0.0f;
    loss[row] = label == labels.ignore ? 0.0f : logsumexp[row] - target;
  }
}

HWY_INLINE V scaled_softmax(D d, V x, V logsumexp, V scale) {
  return hn::Mul(scale, exp_of(d, hn::Sub(x, logsumexp)));
}
/// Of one number: a call of its own, so that the compiler does not join the product to a sum.
HWY_NOINLINE float scaled_softmax_of(float x, float logsumexp, float scale) {
  const D d;
  return hn::GetLane(scaled_softmax(d, hn::Set(d, x), hn::Set(d, logsumexp), hn::Set(d, scale)));
}

/// dlogits = dloss (softmax - one_hot), each rounded once; they may lie where the logits do.
template <typename T>
void cross_entropy_grad_rows(const RowSpan& rows, const void* logits, const Labels& labels,
                             const float* logsumexp, const float* dloss, void* dlogits) {
  const D d;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* x = static_cast<const T*>(logits) + row * rows.n;
    T* dx = static_cast<T*>(dlogits) + row * rows.n;
    if (labels.at[row] == labels.ignore) {
      std::memset(static_cast<void*>(dx), 0, static_cast<std::size_t>(rows.n) * sizeof(T));
      continue;
    }
    const std::int64_t label = labels.at[row] - labels.first;
    const bool here = label >= 0 && label < rows.n;
    float of_label = 0;
    if (here)
      of_label = scaled_softmax_of(load_one(x + label), logsumexp[row], dloss[row]) - dloss[row];
    const V shift = hn::Set(d, logsumexp[row]), scale = hn::Set(d, dloss[row]);
    store_each<true>(d, rows.n, x, dx,
                     [&](V v) HWY_ATTR { return scaled_softmax(d, v, shift, scale); });
    if (here) store_one(of_label, dx + label);
  }
}

template <typename T>
constexpr RowFunctions functions_of() {
  return {softmax_rows<T>, cross_entropy_rows<T>, cross_entropy_grad_rows<T>};
}

}  // namespace

RowFunctions find_rows(DType dtype) {
  return with_stored(dtype, [](auto zero) { return functions_of<decltype(zero)>(); });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(find_rows);

constexpr std::int64_t kGrain = 4096;  // elements that are worth a thread

const float* in(const KernelArgs& args, int i) { return static_cast<const float*>(args.ins[i]); }
float* out(const KernelArgs& args, int i) { return static_cast<float*>(args.outs[i]); }

/// The rows of operand 0, split over threads.
class RowKernel : public Kernel {
 public:
  RowKernel(const KernelRequest& request, Pool& pool)
      : functions_(HWY_DYNAMIC_DISPATCH(find_rows)(request.call.in(0).dtype)),
        pool_(&pool),
        n_(request.call.in(0).shape.back()) {
    rows_ = n_ == 0 ? 0 : request.call.in(0).numel() / n_;
    parts_ = parts_of(rows_, kGrain / std::max<std::int64_t>(n_, 1), pool.threads());
  }

 protected:
  template <typename Task>
  void each_part(const Task& task) const {
    run_parts(*pool_, parts_, rows_, [&](int part, std::int64_t begin, std::int64_t end) {
      task(part, RowSpan{n_, begin, end});
    });
  }
  RowFunctions functions_;
  Pool* pool_;
  std::int64_t n_, rows_;
  int parts_;
};

class SoftmaxKernel final : public RowKernel {
 public:
  SoftmaxKernel(const KernelRequest& request, Pool& pool) : RowKernel(request, pool) {
    if (is_16_bit(request.call.in(0).dtype)) terms_ = round_up(n_, 16);
  }
  std::string_view name() const override { return "hwy:softmax"; }
  std::int64_t workspace_bytes() const override {
    return parts_ * terms_ * std::int64_t{sizeof(float)};
  }
  void run(const KernelArgs& args) const override {
    each_part([&](int part, const RowSpan& rows) {
      functions_.softmax(rows, args.ins[0], args.outs[0],
                         static_cast<float*>(args.workspace) + part * terms_);
    });
  }

 private:
  std::int64_t terms_ = 0;  // f32 of a row, for each part
};

class CrossEntropyKernel final : public RowKernel {
 public:
  CrossEntropyKernel(const KernelRequest& request, Pool& pool)
      : RowKernel(request, pool), ignore_(request.call.integer("ignore_index")) {}
  std::string_view name() const override { return "hwy:cross_entropy"; }
  void run(const KernelArgs& args) const override {
    const Labels labels{static_cast<const std::int32_t*>(args.ins[1]), ignore_, 0};
    each_part([&](int, const RowSpan& rows) {
      functions_.cross_entropy(rows, args.ins[0], labels, out(args, 0), out(args, 1));
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
    const Labels labels{static_cast<const std::int32_t*>(args.ins[1]), ignore_, first_};
    each_part([&](int, const RowSpan& rows) {
      functions_.cross_entropy_grad(rows, args.ins[0], labels, in(args, 2), in(args, 3),
                                    args.outs[0]);
    });
  }

 private:
  std::int64_t ignore_, first_;
};

bool accepts(const KernelRequest& request) {
  const DType dtype = request.call.in(0).dtype;
  return all_dense(request) && (dtype == DType::F32 || is_16_bit(dtype));
}

}  // namespace

std::unique_ptr<Kernel> make_softmax(const KernelRequest& request, Pool& pool) {
  const bool last = request.call.integer("dim") == request.call.in(0).ndim() - 1;
  if (!last || !accepts(request)) return nullptr;
  return std::make_unique<SoftmaxKernel>(request, pool);
}

std::unique_ptr<Kernel> make_cross_entropy(const KernelRequest& request, Pool& pool) {
  if (!accepts(request)) return nullptr;
  return std::make_unique<CrossEntropyKernel>(request, pool);
}

std::unique_ptr<Kernel> make_cross_entropy_grad(const KernelRequest& request, Pool& pool) {
  if (!accepts(request)) return nullptr;
  return std::make_unique<CrossEntropyGradKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
