/// The largest elements of rows: one pass over a row, the best so far in a heap whose top is the
/// least of them.

#include <algorithm>
#include <cmath>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/ops/top_k.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kGrain = 16384;  // elements that are worth a thread

struct Placed {
  float value;
  std::int32_t place;
};

/// True where `a` stands before `b` in the result.
bool before(const Placed& a, const Placed& b) {
  return precedes(a.value, a.place, b.value, b.place);
}

/// The first `k` of a row in order, in heap[0 ... k).
void select_row(const float* x, std::int64_t n, std::int64_t k, Placed* heap) {
  for (std::int64_t i = 0; i < k; ++i) heap[i] = {x[i], static_cast<std::int32_t>(i)};
  std::make_heap(heap, heap + k, before);
  for (std::int64_t i = k; i < n; ++i) {
    if (x[i] <= heap[0].value) continue;  // most: of equal ones the earlier stays
    const Placed next{x[i], static_cast<std::int32_t>(i)};
    if (!before(next, heap[0])) continue;  // a NaN is in the way of the comparison above
    std::pop_heap(heap, heap + k, before);
    heap[k - 1] = next;
    std::push_heap(heap, heap + k, before);
  }
  std::sort_heap(heap, heap + k, before);
}

class TopKKernel final : public Kernel {
 public:
  TopKKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool), n_(request.call.in(0).shape.back()), k_(request.call.integer("k")) {
    rows_ = request.call.in(0).numel() / n_;
    parts_ = parts_of(rows_, kGrain / n_, pool.threads());
  }
  std::string_view name() const override { return "cpu:top_k"; }
  std::int64_t workspace_bytes() const override {
    return parts_ * k_ * static_cast<std::int64_t>(sizeof(Placed));
  }
  void run(const KernelArgs& args) const override {
    const float* x = static_cast<const float*>(args.ins[0]);
    float* values = static_cast<float*>(args.outs[0]);
    std::int32_t* places = static_cast<std::int32_t*>(args.outs[1]);
    run_parts(*pool_, parts_, rows_, [&](int part, std::int64_t begin, std::int64_t end) {
      Placed* const heap = static_cast<Placed*>(args.workspace) + part * k_;
      for (std::int64_t row = begin; row < end; ++row) {
        select_row(x + row * n_, n_, k_, heap);
        for (std::int64_t i = 0; i < k_; ++i) {
          values[row * k_ + i] = heap[i].value;
          places[row * k_ + i] = heap[i].place;
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
