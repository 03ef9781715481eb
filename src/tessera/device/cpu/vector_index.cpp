#include <algorithm>
#include <cstring>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_targets.h"
#include "tessera/ops/index_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_index.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

void add_row(const float* x, float* total, std::int64_t n) {
  const hn::ScalableTag<float> d;
  each_vector(d, n,
              [&](auto load, auto store) HWY_ATTR { store(hn::Add(load(total), load(x)), total); });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(add_row);

constexpr std::int64_t kGrainBytes = 32 << 10;  // worth a thread

std::int64_t rows_worth_a_thread(std::int64_t row_bytes) {
  return std::max<std::int64_t>(1, kGrainBytes / std::max<std::int64_t>(1, row_bytes));
}

/// The rows of a table that this rank holds: local places of logical ids.
class RowsHeld {
 public:
  RowsHeld(const ShardInfo& shard, const Shape& table, std::int64_t microbatch) {
    const Shape offset = offset_at(shard, microbatch);
    first_ = offset[0];
    count_ = valid_at(shard, table, offset)[0];
  }
  /// -1 where another rank, or nobody, holds the row.
  std::int64_t place(std::int64_t id) const {
    const std::int64_t local = id - first_;
    return local >= 0 && local < count_ ? local : -1;
  }

 private:
  std::int64_t first_ = 0, count_ = 0;
};

class GatherKernel final : public Kernel {
 public:
  GatherKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        shard_(in_shard(request, 1)),
        table_(request.call.in(1).shape),
        ids_(request.call.in(0).numel()),
        row_bytes_(table_[1] * size_of(request.call.in(1).dtype)) {}
  std::string_view name() const override { return "cpu:gather"; }
  void run(const KernelArgs& args) const override {
    const std::int32_t* ids = static_cast<const std::int32_t*>(args.ins[0]);
    const std::byte* table = static_cast<const std::byte*>(args.ins[1]);
    std::byte* y = static_cast<std::byte*>(args.outs[0]);
    const std::size_t bytes = static_cast<std::size_t>(row_bytes_);
    const RowsHeld held(shard_, table_, args.microbatch);
    pool_->split(ids_, rows_worth_a_thread(row_bytes_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = held.place(ids[i]);
        if (row < 0) {
          std::memset(y + i * row_bytes_, 0, bytes);
        } else {
          std::memcpy(y + i * row_bytes_, table + row * row_bytes_, bytes);
        }
      }
    });
  }

 private:
  Pool* pool_;
  ShardInfo shard_;
  Shape table_;
  std::int64_t ids_, row_bytes_;
};

/// Each thread owns rows of the table: it clears them and adds, in the order of ids, what belongs
/// there.
class ScatterAddKernel final : public Kernel {
 public:
  ScatterAddKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        shard_(out_shard(request, 0)),
        table_(request.call.out(0).shape),
        ids_(request.call.in(0).numel()),
        width_(table_[1]) {}
  std::string_view name() const override { return "hwy:scatter_add"; }
  void run(const KernelArgs& args) const override {
    const std::int32_t* ids = static_cast<const std::int32_t*>(args.ins[0]);
    const float* dy = static_cast<const float*>(args.ins[1]);
    float* table = static_cast<float*>(args.outs[0]);
    const RowsHeld held(shard_, table_, args.microbatch);
    pool_->split(table_[0], rows_worth_a_thread(width_ * 4),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::fill(table + begin * width_, table + end * width_, 0.0f);
                   for (std::int64_t i = 0; i < ids_; ++i) {
                     const std::int64_t row = held.place(ids[i]);
                     if (row >= begin && row < end)
                       HWY_DYNAMIC_DISPATCH(add_row)(dy + i * width_, table + row * width_, width_);
                   }
                 });
  }

 private:
  Pool* pool_;
  ShardInfo shard_;
  Shape table_;
  std::int64_t ids_, width_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request)) return nullptr;
  return std::make_unique<GatherKernel>(request, pool);
}

std::unique_ptr<Kernel> make_scatter_add(const KernelRequest& request, Pool& pool) {
  const bool f32 = request.call.in(1).dtype == DType::F32;
  if (!f32 || !all_dense(request)) return nullptr;
  return std::make_unique<ScatterAddKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
