/// The largest elements of rows, in one pass over a row. What may be among them is put aside; when
/// there is no more room, all but the best are dropped, and the last of these is the limit to beat.

#include <algorithm>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/gemm/vector_targets.h"
#include "tessera/ops/top_k.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_top_k.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// The first place in [begin, n) whose element is above `limit`, or NaN; n where there is none.
std::int64_t next_above(const float* x, std::int64_t begin, std::int64_t n, float limit) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto bound = hn::Set(d, limit);
  std::int64_t i = begin;
  for (; i + lanes <= n; i += lanes) {
    const auto above = hn::Not(hn::Le(hn::LoadU(d, x + i), bound));
    if (!hn::AllFalse(d, above)) return i + hn::FindFirstTrue(d, above);
  }
  for (; i < n; ++i) {
    if (!(x[i] <= limit)) return i;
  }
  return n;
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(next_above);

constexpr std::int64_t kGrain = 16384;  // elements that are worth a thread

struct Placed {
  float value;
  std::int32_t place;
};

/// True where `a` stands before `b` in the result.
bool before(const Placed& a, const Placed& b) {
  return precedes(a.value, a.place, b.value, b.place);
}

/// Elements that are put aside before all but k are dropped: few, so that the limit soon is high.
std::int64_t room_of(std::int64_t n, std::int64_t k) { return std::min(n, 2 * k + 6); }

/// The first `k` of a row in order, in best[0 ... k), which has room for room_of(n, k).
void select_row(const float* x, std::int64_t n, std::int64_t k, Placed* best) {
  const std::int64_t room = room_of(n, k);
  std::int64_t count = 0, i = 0;
  for (; count < room; ++i) best[count++] = {x[i], static_cast<std::int32_t>(i)};
  while (i < n) {
    if (count == room) {
      std::nth_element(best, best + k - 1, best + count, before);
      count = k;
    }
    // An element that equals the limit comes later, and does not precede it.
    const float limit = best[k - 1].value;
    if (limit != limit) break;  // k times NaN
    for (; count < room; ++i) {
      i = HWY_DYNAMIC_DISPATCH(next_above)(x, i, n, limit);
      if (i == n) break;
      best[count++] = {x[i], static_cast<std::int32_t>(i)};
    }
  }
  std::nth_element(best, best + k - 1, best + count, before);
  std::sort(best, best + k, before);
}

class TopKKernel final : public Kernel {
 public:
  TopKKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool), n_(request.call.in(0).shape.back()), k_(request.call.integer("k")) {
    rows_ = request.call.in(0).numel() / n_;
    parts_ = parts_of(rows_, kGrain / n_, pool.threads());
  }
  std::string_view name() const override { return "hwy:top_k"; }
  std::int64_t workspace_bytes() const override {
    return parts_ * room_of(n_, k_) * static_cast<std::int64_t>(sizeof(Placed));
  }
  void run(const KernelArgs& args) const override {
    const float* x = static_cast<const float*>(args.ins[0]);
    float* values = static_cast<float*>(args.outs[0]);
    std::int32_t* places = static_cast<std::int32_t*>(args.outs[1]);
    run_parts(*pool_, parts_, rows_, [&](int part, std::int64_t begin, std::int64_t end) {
      Placed* const best = static_cast<Placed*>(args.workspace) + part * room_of(n_, k_);
      for (std::int64_t row = begin; row < end; ++row) {
        select_row(x + row * n_, n_, k_, best);
        for (std::int64_t i = 0; i < k_; ++i) {
          values[row * k_ + i] = best[i].value;
          places[row * k_ + i] = best[i].place;
        }
      }
    });
  }

 private:
  Pool* pool_;
  std::int64_t rows_, n_, k_;
  int parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_top_k(const KernelRequest& request, Pool& pool) {
  const bool nothing = request.call.out(0).numel() == 0;
  if (!all_dense(request) || !first_are_f32(request, 1) || nothing) return nullptr;
  return std::make_unique<TopKKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
