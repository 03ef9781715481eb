#include "tessera/device/cpu/vector_optimizer.h"

#include <cstring>

#include "tessera/device/cpu/vector_convert.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/gemm/vector_targets.h"
#include "tessera/ops/optimizer_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_optimizer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// The new parameter, and its copy as a T; there is none where T is float.
template <typename T, class V, class Store>
HWY_INLINE void store_parameter(V p, float* out, void* copy, std::int64_t begin,
                                const Store& store) {
  store(p, out + begin);
  if constexpr (sizeof(T) == 2) store(p, static_cast<T*>(copy) + begin);
}

template <typename T>
void adam_span(const AdamSpan& a, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  const auto beta1 = hn::Set(d, a.beta1), beta2 = hn::Set(d, a.beta2);
  const auto rest1 = hn::Set(d, a.rest1), rest2 = hn::Set(d, a.rest2);
  const auto lr = hn::Set(d, a.lr), scale = hn::Set(d, a.scale), eps = hn::Set(d, a.eps);
  const auto inverse1 = hn::Set(d, 1.0f / a.correction1),
             inverse2 = hn::Set(d, 1.0f / a.correction2);
  const auto to_gradient = hn::Set(d, a.decoupled ? 0.0f : a.decay),
             to_step = hn::Set(d, a.decoupled ? a.decay : 0.0f);
  each_vector(d, end - begin, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(a.p + begin);
    const auto g = hn::MulAdd(load(a.g + begin), scale, hn::Mul(to_gradient, p));
    const auto m = hn::MulAdd(beta1, load(a.m + begin), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, load(a.v + begin), hn::Mul(hn::Mul(rest2, g), g));
    const auto root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), eps);
    const auto step = hn::MulAdd(to_step, p, hn::Div(hn::Mul(m, inverse1), root));
    store_parameter<T>(hn::NegMulAdd(lr, step, p), a.p_out, a.copy_out, begin, store);
    store(m, a.m_out + begin);
    store(v, a.v_out + begin);
  });
}

void lamb_span(const LambSpan& a, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  const auto beta1 = hn::Set(d, a.beta1), beta2 = hn::Set(d, a.beta2);
  const auto rest1 = hn::Set(d, a.rest1), rest2 = hn::Set(d, a.rest2);
  const auto scale = hn::Set(d, a.scale), eps = hn::Set(d, a.eps), decay = hn::Set(d, a.decay);
  const auto inverse1 = hn::Set(d, 1.0f / a.correction1),
             inverse2 = hn::Set(d, 1.0f / a.correction2);
  each_vector(d, end - begin, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(a.p + begin), g = hn::Mul(load(a.g + begin), scale);
    const auto m = hn::MulAdd(beta1, load(a.m + begin), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, load(a.v + begin), hn::Mul(hn::Mul(rest2, g), g));
    const auto root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), eps);
    store(hn::MulAdd(decay, p, hn::Div(hn::Mul(m, inverse1), root)), a.u_out + begin);
    store(m, a.m_out + begin);
    store(v, a.v_out + begin);
  });
}

template <typename T>
void sgd_span(const SgdSpan& a, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  const auto lr = hn::Set(d, a.lr), scale = hn::Set(d, a.scale);
  const auto momentum = hn::Set(d, a.momentum), decay = hn::Set(d, a.decay);
  each_vector(d, end - begin, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(a.p + begin);
    const auto g = hn::MulAdd(load(a.g + begin), scale, hn::Mul(decay, p));
    const auto u = hn::MulAdd(momentum, load(a.u + begin), g);
    const auto step = a.nesterov ? hn::MulAdd(momentum, u, g) : u;
    store_parameter<T>(hn::NegMulAdd(lr, step, p), a.p_out, a.copy_out, begin, store);
    store(u, a.u_out + begin);
  });
}

AdamFunction find_adam(DType copy) {
  return with_stored(copy, [](auto zero) -> AdamFunction { return adam_span<decltype(zero)>; });
}
SgdFunction find_sgd(DType copy) {
  return with_stored(copy, [](auto zero) -> SgdFunction { return sgd_span<decltype(zero)>; });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(find_adam);
HWY_EXPORT(lamb_span);
HWY_EXPORT(find_sgd);

constexpr std::int64_t kGrain = 8192;  // elements that are worth a thread

const float* in(const KernelArgs& args, int i) { return static_cast<const float*>(args.ins[i]); }
float* out(const KernelArgs& args, int i) { return static_cast<float*>(args.outs[i]); }
float scalar(const KernelArgs& args, int i) { return *in(args, i); }
float number(const KernelRequest& request, std::string_view name) {
  return static_cast<float>(request.call.number(name));
}
float rest(const KernelRequest& request, std::string_view beta) {
  return static_cast<float>(1 - request.call.number(beta));
}

/// What an AdamSpan and a LambSpan have of the op's attributes.
template <typename Span>
Span span_of(const KernelRequest& request) {
  Span out{};
  out.beta1 = number(request, "beta1"), out.rest1 = rest(request, "beta1");
  out.beta2 = number(request, "beta2"), out.rest2 = rest(request, "beta2");
  out.eps = number(request, "eps"), out.decay = number(request, "weight_decay");
  return out;
}

/// A skipped step: of results [first, results), what does not lie in place already is copied.
void keep(const KernelArgs& args, int results, std::int64_t numel, int first = 0) {
  for (int i = first; i < results; ++i) {
    if (args.outs[i] != args.ins[i])
      std::memcpy(args.outs[i], args.ins[i], static_cast<std::size_t>(numel) * 4);
  }
}

/// And the copy of the parameter, which other values may have overwritten since it was made.
void keep(const KernelArgs& args, int results, std::int64_t numel, DType copy, Pool& pool) {
  keep(args, results, numel);
  if (copy == DType::F32) return;
  pool.split(numel, kGrain, [&](std::int64_t begin, std::int64_t end) {
    narrow(copy, in(args, 0) + begin, static_cast<std::uint16_t*>(args.outs[results]) + begin,
           end - begin);
  });
}

DType copy_dtype(const KernelRequest& request) {
  return request.call.dtype_or(kCopyDType.name, DType::F32);
}

/// A copy behind so many results that has the parameter's dtype.
bool copies_in_f32(const KernelRequest& request, int results) {
  return request.call.num_out() > results && request.call.out(results).dtype == DType::F32;
}

class AdamKernel final : public Kernel {
 public:
  AdamKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        numel_(request.call.in(0).numel()),
        function_(HWY_DYNAMIC_DISPATCH(find_adam)(copy_dtype(request))),
        copy_(copy_dtype(request)),
        span_(span_of<AdamSpan>(request)) {
    span_.decoupled = request.call.flag("decoupled");
  }
  std::string_view name() const override { return "hwy:adam"; }
  void run(const KernelArgs& args) const override {
    if (!*static_cast<const bool*>(args.ins[8])) return keep(args, 3, numel_, copy_, *pool_);
    AdamSpan a = span_;
    a.p = in(args, 0), a.m = in(args, 1), a.v = in(args, 2), a.g = in(args, 3);
    a.p_out = out(args, 0), a.m_out = out(args, 1), a.v_out = out(args, 2);
    if (copy_ != DType::F32) a.copy_out = args.outs[3];
    a.lr = scalar(args, 4), a.scale = scalar(args, 5);
    a.correction1 = scalar(args, 6), a.correction2 = scalar(args, 7);
    pool_->split(numel_, kGrain,
                 [&](std::int64_t begin, std::int64_t end) { function_(a, begin, end); });
  }

 private:
  Pool* pool_;
  std::int64_t numel_;
  AdamFunction function_;
  DType copy_;
  AdamSpan span_;
};

class LambKernel final : public Kernel {
 public:
  LambKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool), numel_(request.call.in(0).numel()), span_(span_of<LambSpan>(request)) {}
  std::string_view name() const override { return "hwy:lamb"; }
  void run(const KernelArgs& args) const override {
    if (!*static_cast<const bool*>(args.ins[7])) {
      std::memset(args.outs[0], 0, static_cast<std::size_t>(numel_) * 4);
      return keep(args, 3, numel_, 1);
    }
    LambSpan a = span_;
    a.p = in(args, 0), a.m = in(args, 1), a.v = in(args, 2), a.g = in(args, 3);
    a.u_out = out(args, 0), a.m_out = out(args, 1), a.v_out = out(args, 2);
    a.scale = scalar(args, 4), a.correction1 = scalar(args, 5), a.correction2 = scalar(args, 6);
    pool_->split(numel_, kGrain, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(lamb_span)(a, begin, end);
    });
  }

 private:
  Pool* pool_;
  std::int64_t numel_;
  LambSpan span_;
};

class SgdKernel final : public Kernel {
 public:
  SgdKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        numel_(request.call.in(0).numel()),
        function_(HWY_DYNAMIC_DISPATCH(find_sgd)(copy_dtype(request))),
        copy_(copy_dtype(request)) {
    span_.momentum = number(request, "momentum"), span_.decay = number(request, "weight_decay");
    span_.nesterov = request.call.flag("nesterov");
  }
  std::string_view name() const override { return "hwy:sgd"; }
  void run(const KernelArgs& args) const override {
    if (!*static_cast<const bool*>(args.ins[5])) return keep(args, 2, numel_, copy_, *pool_);
    SgdSpan a = span_;
    a.p = in(args, 0), a.u = in(args, 1), a.g = in(args, 2);
    a.p_out = out(args, 0), a.u_out = out(args, 1);
    if (copy_ != DType::F32) a.copy_out = args.outs[2];
    a.lr = scalar(args, 3), a.scale = scalar(args, 4);
    pool_->split(numel_, kGrain,
                 [&](std::int64_t begin, std::int64_t end) { function_(a, begin, end); });
  }

 private:
  Pool* pool_;
  std::int64_t numel_;
  SgdFunction function_;
  DType copy_;
  SgdSpan span_{};
};

}  // namespace

std::unique_ptr<Kernel> make_adam(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 4) || copies_in_f32(request, 3))
    return nullptr;
  return std::make_unique<AdamKernel>(request, pool);
}

std::unique_ptr<Kernel> make_lamb(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 4)) return nullptr;
  return std::make_unique<LambKernel>(request, pool);
}

std::unique_ptr<Kernel> make_sgd(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request) || !first_are_f32(request, 3) || copies_in_f32(request, 2))
    return nullptr;
  return std::make_unique<SgdKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
