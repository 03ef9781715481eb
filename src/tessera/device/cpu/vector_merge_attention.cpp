#include "tessera/device/cpu/grain.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/attention_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_merge_attention.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_load.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// out = first * x + second * y, of n numbers; y lies in `dtype`.
void add_weighted(const float* x, float first, const void* y, float second, DType dtype,
                  std::int64_t n, float* out) {
  with_stored(dtype, [&](auto zero) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const auto* more = static_cast<const decltype(zero)*>(y);
    const auto a = hn::Set(d, first), b = hn::Set(d, second);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const auto scaled = hn::Mul(b, load_vector(d, more + i));
      hn::StoreU(hn::MulAdd(a, hn::LoadU(d, x + i), scaled), d, out + i);
    }
    for (; i < n; ++i) out[i] = first * x[i] + second * load_one(more + i);
    return 0;
  });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(add_weighted);

constexpr std::int64_t kNumbersPerThread = 8192;

class MergeAttention final : public Kernel {
 public:
  MergeAttention(const KernelRequest& request, Pool& pool)
      : pool_(pool), shape_(request.call.in(0).shape), dtype_(request.call.in(2).dtype) {}

  std::string_view name() const override { return "hwy:merge_attention"; }

  void run(const KernelArgs& args) const override {
    const std::int64_t S = shape_[1], heads = shape_[2] * shape_[3], e = shape_[4];
    const auto *y = static_cast<const float*>(args.ins[0]),
               *logsumexp = static_cast<const float*>(args.ins[1]),
               *of_more = static_cast<const float*>(args.ins[3]);
    const auto* more = static_cast<const std::byte*>(args.ins[2]);
    auto *out = static_cast<float*>(args.outs[0]), *sum = static_cast<float*>(args.outs[1]);
    const std::int64_t grain = std::max<std::int64_t>(kNumbersPerThread / (heads * e), 1);
    pool_.split(shape_[0] * S, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t token = begin; token < end; ++token) {
        for (std::int64_t head = 0; head < heads; ++head) {
          const std::int64_t row = (token / S * heads + head) * S + token % S,
                             at = (token * heads + head) * e;
          const MergedRow<float> merged = merged_row(logsumexp[row], of_more[row]);
          HWY_DYNAMIC_DISPATCH(add_weighted)
          (y + at, merged.first, more + at * size_of(dtype_), merged.second, dtype_, e, out + at);
          sum[row] = merged.logsumexp;
        }
      }
    });
  }

 private:
  Pool& pool_;
  Shape shape_;
  DType dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_merge_attention(const KernelRequest& request, Pool& pool) {
  const bool fits = request.call.in(0).dtype == DType::F32 && request.call.in(0).numel() > 0;
  return fits && all_dense(request) ? std::make_unique<MergeAttention>(request, pool) : nullptr;
}

}  // namespace tessera::cpu
#endif
