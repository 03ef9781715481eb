#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_rope.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// Pairs (i, i + pairs) of one row turned by the angles of `cosine` and `sine`; y may be x.
void rotate(const float* x, const float* cosine, const float* sine, std::int64_t pairs, float* y) {
  const hn::ScalableTag<float> d;
  each_vector(d, pairs, [&](auto load, auto store) HWY_ATTR {
    const auto a = load(x), b = load(x + pairs), c = load(cosine), s = load(sine);
    store(hn::NegMulAdd(b, s, hn::Mul(a, c)), y);
    store(hn::MulAdd(a, s, hn::Mul(b, c)), y + pairs);
  });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(rotate);

constexpr std::int64_t kGrain = 4096;  // elements that are worth a thread

/// Sines are computed once for a token and shared by its heads. x may lie at any strides whose last
/// dim is contiguous.
class RopeKernel final : public Kernel {
 public:
  RopeKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        shape_(request.call.in(0).shape),
        strides_(strides_of(request, 0)),
        factor_(static_cast<float>(request.call.number("factor"))),
        sign_(request.call.flag("inverse") ? -1.0f : 1.0f),
        width_(shape_.back()),
        tokens_(request.call.in(1).numel()) {
    for (const double rate : request.call.numbers("rates"))
      rates_.push_back(static_cast<float>(rate));
    pairs_ = static_cast<std::int64_t>(rates_.size());
    for (int d = 2; d + 1 < shape_.ndim(); ++d) per_token_ *= shape_[d];
    parts_ =
        parts_of(tokens_, kGrain / std::max<std::int64_t>(1, per_token_ * width_), pool.threads());
  }
  std::string_view name() const override { return "hwy:rope"; }
  std::int64_t workspace_bytes() const override {
    return parts_ * 2 * pairs_ * std::int64_t{sizeof(float)};
  }

  void run(const KernelArgs& args) const override {
    run_parts(*pool_, parts_, tokens_, [&](int part, std::int64_t begin, std::int64_t end) {
      float* cosine = static_cast<float*>(args.workspace) + part * 2 * pairs_;
      for (std::int64_t token = begin; token < end; ++token)
        turn(args, token, cosine, cosine + pairs_);
    });
  }

 private:
  void turn(const KernelArgs& args, std::int64_t token, float* cosine, float* sine) const {
    const float position = static_cast<float>(static_cast<const std::int32_t*>(args.ins[1])[token]);
    for (std::int64_t i = 0; i < pairs_; ++i) {
      const float angle = position * rates_[static_cast<std::size_t>(i)];
      cosine[i] = factor_ * std::cos(angle), sine[i] = factor_ * sign_ * std::sin(angle);
    }
    const float* x = static_cast<const float*>(args.ins[0]);
    float* y = static_cast<float*>(args.outs[0]) + token * per_token_ * width_;
    const std::int64_t first = token / shape_[1] * strides_[0] + token % shape_[1] * strides_[1];
    for (std::int64_t row = 0; row < per_token_; ++row) {
      std::int64_t offset = first, rest = row;
      for (int d = shape_.ndim() - 2; d >= 2; --d)
        offset += rest % shape_[d] * strides_[d], rest /= shape_[d];
      const float* from = x + offset;
      float* to = y + row * width_;
      HWY_DYNAMIC_DISPATCH(rotate)(from, cosine, sine, pairs_, to);
      if (from != to) std::copy(from + 2 * pairs_, from + width_, to + 2 * pairs_);
    }
  }

  Pool* pool_;
  Shape shape_, strides_;
  float factor_, sign_;
  std::int64_t width_, tokens_, pairs_, per_token_ = 1;  // rows that share a position
  std::vector<float> rates_;
  int parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_rope(const KernelRequest& request, Pool& pool) {
  const Shape strides = strides_of(request, 0);
  if (!first_are_f32(request, 1) || strides.back() != 1 || !is_dense(request, 1)) return nullptr;
  return std::make_unique<RopeKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
