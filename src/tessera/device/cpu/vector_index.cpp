#include <algorithm>
#include <cstring>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/gemm/vector_targets.h"
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

/// A table as [outer, rows, inner], whose rows ids name, and which of them this rank holds.
struct Table {
  std::int64_t outer = 1, rows = 1, inner = 1;
  Table(std::int64_t dim, const Shape& shape, const ShardInfo& shard)
      : dim_(static_cast<int>(dim)), shape_(shape), shard_(shard) {
    rows = shape[dim_];
    for (int d = 0; d < dim_; ++d) outer *= shape[d];
    for (int d = dim_ + 1; d < shape.ndim(); ++d) inner *= shape[d];
  }

  /// Local places of logical ids.
  struct Held {
    std::int64_t first, count;
    /// -1 where another rank, or nobody, holds the row.
    std::int64_t place(std::int64_t id) const {
      const std::int64_t local = id - first;
      return local >= 0 && local < count ? local : -1;
    }
  };
  Held held(std::int64_t microbatch) const {
    const Shape offset = offset_at(shard_, microbatch);
    return {offset[dim_], valid_at(shard_, shape_, offset)[dim_]};
  }

 private:
  int dim_;
  Shape shape_;
  ShardInfo shard_;
};

class GatherKernel final : public Kernel {
 public:
  GatherKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        table_(request.call.integer("dim"), request.call.in(1).shape, in_shard(request, 1)),
        ids_(request.call.in(0).numel()),
        size_(size_of(request.call.in(1).dtype)) {}
  std::string_view name() const override { return "cpu:gather"; }
  void run(const KernelArgs& args) const override {
    const std::int32_t* ids = static_cast<const std::int32_t*>(args.ins[0]);
    const std::byte* table = static_cast<const std::byte*>(args.ins[1]);
    std::byte* y = static_cast<std::byte*>(args.outs[0]);
    const Table::Held held = table_.held(args.microbatch);
    if (table_.inner == 1 && size_ == 4) return gather_rows<4>(ids, table, y, held);
    gather_rows<0>(ids, table, y, held);
  }

 private:
  /// kBytes: of a row; 0: as the table says.
  template <std::int64_t kBytes>
  void gather_rows(const std::int32_t* ids, const std::byte* table, std::byte* y,
                   Table::Held held) const {
    const std::int64_t row_bytes = kBytes > 0 ? kBytes : table_.inner * size_;
    const auto bytes = static_cast<std::size_t>(row_bytes);
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {  // what one outer index has of it
        const std::int64_t o = begin / ids_, first = begin % ids_,
                           count = std::min(ids_ - first, end - begin);
        const std::byte* const rows = table + o * table_.rows * row_bytes;
        std::byte* to = y + begin * row_bytes;
        for (std::int64_t i = first; i < first + count; ++i, to += row_bytes) {
          const std::int64_t row = held.place(ids[i]);
          if (row < 0)
            std::memset(to, 0, bytes);
          else
            std::memcpy(to, rows + row * row_bytes, bytes);
        }
        begin += count;
      }
    };
    pool_->split(table_.outer * ids_, rows_worth_a_thread(row_bytes), part);
  }

  Pool* pool_;
  Table table_;
  std::int64_t ids_, size_;
};

/// Of each row of x one element, which an id names.
class PickKernel final : public Kernel {
 public:
  explicit PickKernel(const KernelRequest& request)
      : rows_(request.call.in(0).ndim() - 1, request.call.in(0).shape, in_shard(request, 0)),
        size_(size_of(request.call.in(0).dtype)) {}
  std::string_view name() const override { return "cpu:pick"; }
  void run(const KernelArgs& args) const override {
    const std::int32_t* ids = static_cast<const std::int32_t*>(args.ins[1]);
    const std::byte* x = static_cast<const std::byte*>(args.ins[0]);
    std::byte* y = static_cast<std::byte*>(args.outs[0]);
    const auto bytes = static_cast<std::size_t>(size_);
    const Table::Held held = rows_.held(args.microbatch);
    for (std::int64_t i = 0; i < rows_.outer; ++i, y += size_) {
      const std::int64_t place = held.place(ids[i]);
      if (place < 0)
        std::memset(y, 0, bytes);
      else
        std::memcpy(y, x + (i * rows_.rows + place) * size_, bytes);
    }
  }

 private:
  Table rows_;
  std::int64_t size_;
};

/// Each thread owns rows of the table: it clears them, or copies what to add onto, and adds, in the
/// order of ids, what belongs there.
class ScatterAddKernel final : public Kernel {
 public:
  ScatterAddKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        table_(request.call.integer("dim"), request.call.out(0).shape, out_shard(request, 0)),
        ids_(request.call.in(0).numel()),
        onto_(request.call.num_in() > 2) {}
  std::string_view name() const override { return "hwy:scatter_add"; }
  void run(const KernelArgs& args) const override {
    const std::int32_t* ids = static_cast<const std::int32_t*>(args.ins[0]);
    const float* dy = static_cast<const float*>(args.ins[1]);
    const float* onto = onto_ ? static_cast<const float*>(args.ins[2]) : nullptr;
    float* table = static_cast<float*>(args.outs[0]);
    const Table::Held held = table_.held(args.microbatch);
    const std::int64_t width = table_.inner, rows = table_.rows;
    if (rows == 0) return;
    pool_->split(table_.outer * rows, rows_worth_a_thread(width * 4),
                 [&](std::int64_t begin, std::int64_t end) {
                   if (onto == nullptr) {
                     std::fill(table + begin * width, table + end * width, 0.0f);
                   } else if (onto != table) {
                     std::copy(onto + begin * width, onto + end * width, table + begin * width);
                   }
                   for (std::int64_t o = begin / rows; o * rows < end; ++o)
                     add_rows(ids, dy + o * ids_ * width, table + o * rows * width, held,
                              begin - o * rows, end - o * rows);
                 });
  }

 private:
  /// Of one outer index, what belongs to the rows [begin, end).
  void add_rows(const std::int32_t* ids, const float* dy, float* table, const Table::Held& held,
                std::int64_t begin, std::int64_t end) const {
    const std::int64_t width = table_.inner;
    for (std::int64_t i = 0; i < ids_; ++i) {
      const std::int64_t row = held.place(ids[i]);
      if (row < 0 || row < begin || row >= end) continue;
      if (width == 1)
        table[row] += dy[i];
      else
        HWY_DYNAMIC_DISPATCH(add_row)(dy + i * width, table + row * width, width);
    }
  }

  Pool* pool_;
  Table table_;
  std::int64_t ids_;
  bool onto_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather(const KernelRequest& request, Pool& pool) {
  if (!all_dense(request)) return nullptr;
  return std::make_unique<GatherKernel>(request, pool);
}

std::unique_ptr<Kernel> make_pick(const KernelRequest& request, Pool&) {
  if (!all_dense(request)) return nullptr;
  return std::make_unique<PickKernel>(request);
}

std::unique_ptr<Kernel> make_scatter_add(const KernelRequest& request, Pool& pool) {
  const bool f32 = request.call.in(1).dtype == DType::F32;
  if (!f32 || !all_dense(request)) return nullptr;
  return std::make_unique<ScatterAddKernel>(request, pool);
}

}  // namespace tessera::cpu
#endif
