#include "tessera/device/cpu/grouped.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/round_up.h"
#include "tessera/gemm/dot_gemm.h"
#include "tessera/gemm/onednn.h"
#include "tessera/gemm/panels.h"
#include "tessera/gemm/tile_gemm.h"
#include "tessera/ops/matmul.h"

namespace tessera::cpu {

namespace {

/// Rows that are multiplied at a time, the largest first: what is left of a group is filled up with
/// zeros to the last size.
constexpr std::array<std::int64_t, 5> kBlocks = {256, 128, 64, 32, 16};
constexpr std::int64_t kColumnGrain = 16, kLeastColumns = 64;
constexpr std::int64_t kGrainOfRows = 64;  // worth a thread, where they are only cleared

/// Some rows of a group, and the size of the products that take them.
struct RowBlock {
  std::int32_t group, first, rows, size;  // first: among the sorted rows; size: in kBlocks
};

/// Sizes of a call, and where its working memory lies.
class Sorting {
 public:
  Sorting(const KernelRequest& request, const ShardInfo& groups, std::int64_t groups_here)
      : groups_(groups),
        count_(groups_here),
        ids_(request.call.in(0).numel()),
        most_blocks_(ids_ / kBlocks[0] + count_ * std::ssize(kBlocks)) {}

  std::int64_t ids() const { return ids_; }
  std::int64_t groups() const { return count_; }
  std::int64_t bytes() const {
    return round_up(4 * ids_, 64) + round_up(8 * (count_ + 2), 64) +
           round_up(std::int64_t{sizeof(RowBlock)} * most_blocks_, 64);
  }

  /// The places of ids, those of one group together, in order; those of no group here at the end.
  struct Result {
    std::int32_t* order;
    std::int64_t* begins;  // of each group, of the ids of none, and the end
    std::span<const RowBlock> blocks;
    std::int64_t rows(std::int64_t group) const { return begins[group + 1] - begins[group]; }
  };
  Result sort(const KernelArgs& args) const {
    char* const memory = static_cast<char*>(args.workspace);
    auto* const order = reinterpret_cast<std::int32_t*>(memory);
    auto* const begins = reinterpret_cast<std::int64_t*>(memory + round_up(4 * ids_, 64));
    auto* const blocks = reinterpret_cast<RowBlock*>(memory + round_up(4 * ids_, 64) +
                                                     round_up(8 * (count_ + 2), 64));
    const auto* const ids = static_cast<const std::int32_t*>(args.ins[0]);
    const std::int64_t first = offset_at(groups_, args.microbatch)[0],
                       held = std::clamp<std::int64_t>(groups_.limit[0] - first, 0, count_);
    const auto group_of = [&](std::int64_t id) {
      const std::int64_t local = id - first;
      return local >= 0 && local < held ? local : count_;
    };
    std::fill_n(begins, count_ + 2, 0);
    for (std::int64_t i = 0; i < ids_; ++i) ++begins[group_of(ids[i])];
    std::int64_t sum = 0;
    for (std::int64_t g = 0; g <= count_ + 1; ++g) sum += std::exchange(begins[g], sum);
    for (std::int64_t i = 0; i < ids_; ++i)
      order[begins[group_of(ids[i])]++] = static_cast<std::int32_t>(i);
    for (std::int64_t g = count_ + 1; g > 0; --g) begins[g] = begins[g - 1];  // ends were left
    begins[0] = 0;
    return {order, begins, {blocks, cut(begins, blocks)}};
  }

 private:
  std::size_t cut(const std::int64_t* begins, RowBlock* blocks) const {
    std::size_t out = 0;
    for (std::int64_t g = 0; g < count_; ++g) {
      for (std::int64_t at = begins[g]; at < begins[g + 1];) {
        const std::int64_t left = begins[g + 1] - at;
        std::size_t size = 0;
        while (size + 1 < kBlocks.size() && kBlocks[size] > left) ++size;
        const std::int64_t rows = std::min(left, kBlocks[size]);
        blocks[out++] = {static_cast<std::int32_t>(g), static_cast<std::int32_t>(at),
                         static_cast<std::int32_t>(rows), static_cast<std::int32_t>(size)};
        at += rows;
      }
    }
    return out;
  }

  ShardInfo groups_;
  std::int64_t count_, ids_, most_blocks_;
};

/// Parts of the columns, so many that `blocks` times these keep all threads at work.
struct Columns {
  std::int64_t all, step, parts;
  Columns(std::int64_t columns, std::int64_t blocks, int threads) : all(columns) {
    const std::int64_t wanted = (2 * threads + blocks - 1) / std::max<std::int64_t>(blocks, 1),
                       most = std::max<std::int64_t>(columns / kLeastColumns, 1),
                       cut = threads == 1 ? 1 : std::clamp<std::int64_t>(wanted, 1, most);
    step = std::min(round_up((columns + cut - 1) / cut, kColumnGrain), columns);
    parts = (columns + step - 1) / step;
  }
  std::int64_t width(std::int64_t part) const { return std::min(step, all - part * step); }
  bool is_last_and_other(std::int64_t part) const { return width(part) != step; }
};

/// Calls work(task, i) for i below `count`, whichever thread is free.
template <typename Work>
void share_out(Pool& pool, std::int64_t count, const Work& work) {
  std::atomic<std::int64_t> next = 0;
  pool.run(static_cast<int>(std::min<std::int64_t>(pool.threads(), count)), [&](int task) {
    for (std::int64_t i = next++; i < count; i = next++) work(task, i);
  });
}

/// Rows of `from` at these places among the ids, `per` of which share one, then zeros.
template <typename T>
void gather_places(const T* from, std::int64_t width, std::int64_t stride, std::int64_t per,
                   std::span<const std::int32_t> places, std::int64_t size, T* to) {
  for (const std::int32_t place : places) {
    std::memcpy(to, from + place / per * stride, static_cast<std::size_t>(width) * sizeof(T));
    to += width;
  }
  std::fill_n(to, (size - std::ssize(places)) * width, T(0));
}

/// A kernel's working memory: that of the sorting, then for each task rows of two operands and what
/// products need.
class TaskMemory {
 public:
  TaskMemory(std::int64_t sorting_bytes, std::int64_t first_bytes, std::int64_t second_bytes,
             std::int64_t scratch_bytes)
      : begin_(sorting_bytes),
        second_(round_up(first_bytes, 64)),
        scratch_(second_ + round_up(second_bytes, 64)),
        step_(scratch_ + round_up(scratch_bytes, 64)) {}

  std::int64_t bytes(int tasks) const { return begin_ + tasks * step_; }

  struct Parts {
    char *first, *second, *scratch;
  };
  Parts of(void* workspace, int task) const {
    char* const at = static_cast<char*>(workspace) + begin_ + task * step_;
    return {at, at + second_, at + scratch_};
  }

 private:
  std::int64_t begin_, second_, scratch_, step_;
};

template <typename Product>
std::int64_t most_scratch(const std::vector<Product>& products) {
  std::int64_t out = 0;
  for (const Product& product : products) out = std::max(out, product.scratch_bytes());
  return out;
}

std::int64_t ids_per_row(const OpCall& call, int i) {
  return call.in(i).ndim() > call.in(0).ndim() ? 1 : call.in(0).shape.back();
}

template <typename Product>
class GroupedMatmul final : public Kernel {
 public:
  using In = typename Product::In;
  using Out = typename Product::Out;

  GroupedMatmul(const KernelRequest& request, Pool& pool)
      : sorting_(request, in_shard(request, 2), request.call.in(2).shape[0]),
        per_(ids_per_row(request.call, 1)),
        k_(request.call.in(1).shape.back()),
        columns_(request.call.out(0).shape.back(),
                 sorting_.ids() / kBlocks[0] + sorting_.groups() / 2 + 1, pool.threads()),
        trans_(request.call.flag("trans_w")),
        pool_(pool),
        products_(products()),
        memory_(sorting_.bytes(), kBlocks[0] * k_ * std::int64_t{sizeof(In)},
                kBlocks[0] * columns_.step * std::int64_t{sizeof(Out)}, most_scratch(products_)) {}

  std::string_view name() const override { return Product::kGroupedName; }
  std::int64_t workspace_bytes() const override { return memory_.bytes(pool_.threads()); }

  void run(const KernelArgs& args) const override {
    const Sorting::Result sorted = sorting_.sort(args);
    const std::int64_t width = columns_.all, held = sorted.begins[sorting_.groups()];
    auto* const y = static_cast<Out*>(args.outs[0]);
    pool_.split(sorting_.ids() - held, kGrainOfRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = held + begin; i < held + end; ++i)
        std::fill_n(y + sorted.order[i] * width, width, Out(0));
    });
    share_out(pool_, std::ssize(sorted.blocks) * columns_.parts, [&](int task, std::int64_t i) {
      multiply(args, sorted, sorted.blocks[static_cast<std::size_t>(i / columns_.parts)],
               i % columns_.parts, task);
    });
  }

 private:
  /// Per size of a block: of most parts of columns, of the last.
  std::vector<Product> products() const {
    std::vector<Product> out;
    for (const std::int64_t size : kBlocks) {
      for (const std::int64_t part : {std::int64_t{0}, columns_.parts - 1}) {
        const std::int64_t n = columns_.width(part);
        out.emplace_back(
            GemmShape{size, n, k_, k_, 1, trans_ ? 1 : columns_.all, trans_ ? k_ : 1, n, false});
      }
    }
    return out;
  }

  void multiply(const KernelArgs& args, const Sorting::Result& sorted, const RowBlock& block,
                std::int64_t part, int task) const {
    const TaskMemory::Parts memory = memory_.of(args.workspace, task);
    auto* const a = reinterpret_cast<In*>(memory.first);
    auto* const c = reinterpret_cast<Out*>(memory.second);
    const auto size = static_cast<std::size_t>(block.size);
    const std::span<const std::int32_t> places(sorted.order + block.first,
                                               static_cast<std::size_t>(block.rows));
    gather_places(static_cast<const In*>(args.ins[1]), k_, k_, per_, places, kBlocks[size], a);
    const In* const w = static_cast<const In*>(args.ins[2]) + block.group * k_ * columns_.all +
                        part * columns_.step * (trans_ ? k_ : 1);
    const std::int64_t n = columns_.width(part);
    products_[2 * size + (columns_.is_last_and_other(part) ? 1 : 0)].execute(a, w, c,
                                                                             memory.scratch);
    auto* const y = static_cast<Out*>(args.outs[0]) + part * columns_.step;
    for (std::int64_t r = 0; r < block.rows; ++r)
      std::memcpy(y + places[static_cast<std::size_t>(r)] * columns_.all, c + r * n,
                  static_cast<std::size_t>(n) * sizeof(Out));
  }

  Sorting sorting_;
  std::int64_t per_, k_;
  Columns columns_;
  bool trans_;
  Pool& pool_;
  std::vector<Product> products_;
  TaskMemory memory_;
};

/// Sums over the rows of each group, in f32.
template <typename Product>
class GroupedOuter final : public Kernel {
 public:
  using In = typename Product::In;
  static_assert(std::is_same_v<typename Product::Out, float>);

  GroupedOuter(const KernelRequest& request, Pool& pool)
      : sorting_(request, out_shard(request, 0), request.call.out(0).shape[0]),
        p_per_(ids_per_row(request.call, 1)),
        q_per_(ids_per_row(request.call, 2)),
        m_(request.call.in(1).shape.back()),
        columns_(request.call.in(2).shape.back(), sorting_.groups(), pool.threads()),
        onto_(request.call.num_in() > 3),
        pool_(pool),
        products_(products()),
        memory_(sorting_.bytes(), kBlocks[0] * m_ * std::int64_t{sizeof(In)},
                kBlocks[0] * columns_.step * std::int64_t{sizeof(In)}, most_scratch(products_)) {}

  std::string_view name() const override { return Product::kGroupedName; }
  std::int64_t workspace_bytes() const override { return memory_.bytes(pool_.threads()); }

  void run(const KernelArgs& args) const override {
    const Sorting::Result sorted = sorting_.sort(args);
    const std::int64_t matrix = m_ * columns_.all;
    auto* const y = static_cast<float*>(args.outs[0]);
    if (onto_ && args.ins[3] != args.outs[0])
      std::memcpy(y, args.ins[3], static_cast<std::size_t>(sorting_.groups() * matrix) * 4);
    share_out(pool_, sorting_.groups() * columns_.parts, [&](int task, std::int64_t i) {
      add_up(args, sorted, i / columns_.parts, i % columns_.parts, task);
    });
  }

 private:
  /// Per size of a block: of most parts of columns, of the last; each alone, added on.
  std::vector<Product> products() const {
    std::vector<Product> out;
    for (const std::int64_t size : kBlocks) {
      for (const std::int64_t part : {std::int64_t{0}, columns_.parts - 1}) {
        const std::int64_t n = columns_.width(part);
        for (const bool adds : {false, true})
          out.emplace_back(GemmShape{m_, n, size, 1, m_, n, 1, columns_.all, adds});
      }
    }
    return out;
  }

  void add_up(const KernelArgs& args, const Sorting::Result& sorted, std::int64_t group,
              std::int64_t part, int task) const {
    const TaskMemory::Parts memory = memory_.of(args.workspace, task);
    auto *const p = reinterpret_cast<In*>(memory.first), *const q =
                                                             reinterpret_cast<In*>(memory.second);
    const std::int64_t n = columns_.width(part);
    auto* const y =
        static_cast<float*>(args.outs[0]) + group * m_ * columns_.all + part * columns_.step;
    if (sorted.rows(group) == 0 && !onto_)
      for (std::int64_t r = 0; r < m_; ++r) std::fill_n(y + r * columns_.all, n, 0.0F);
    bool adds = onto_;
    for (const RowBlock& block : sorted.blocks) {
      if (block.group != group) continue;
      const auto size = static_cast<std::size_t>(block.size);
      const std::span<const std::int32_t> places(sorted.order + block.first,
                                                 static_cast<std::size_t>(block.rows));
      gather_places(static_cast<const In*>(args.ins[1]), m_, m_, p_per_, places, kBlocks[size], p);
      gather_places(static_cast<const In*>(args.ins[2]) + part * columns_.step, n, columns_.all,
                    q_per_, places, kBlocks[size], q);
      products_[4 * size + (columns_.is_last_and_other(part) ? 2 : 0) + (adds ? 1 : 0)].execute(
          p, q, y, memory.scratch);
      adds = true;
    }
  }

  Sorting sorting_;
  std::int64_t p_per_, q_per_, m_;
  Columns columns_;
  bool onto_;
  Pool& pool_;
  std::vector<Product> products_;
  TaskMemory memory_;
};

template <typename Element>
constexpr DType kDTypeOf = std::is_same_v<Element, float> ? DType::F32 : DType::BF16;

/// Operands lie dense, rows and matrices are not empty, and elements are the product's.
template <typename Product>
bool takes(const KernelRequest& request) {
  const OpCall& call = request.call;
  for (int i = 0; i < call.num_in(); ++i) {
    if (!call.in(i).layout.plain() || !is_dense(request, i) || call.in(i).numel() == 0)
      return false;
  }
  return call.in(1).dtype == kDTypeOf<typename Product::In> && call.out(0).numel() > 0 &&
         call.out(0).dtype == kDTypeOf<typename Product::Out>;
}

/// Of 16-bit floats other kernels would convert all matrices first.
template <typename Product>
bool pays(const KernelRequest& request, Pool& pool) {
  if constexpr (std::is_same_v<Product, Gemm> || std::is_same_v<typename Product::In, Bf16>) {
    return true;
  } else {
    const ProductSize size = request.call.op().product(request.call);
    const auto whole = [](double x) {
      return std::max<std::int64_t>(static_cast<std::int64_t>(x), 1);
    };
    return Product::pays(std::min(whole(size.m), kBlocks[0]), whole(size.n), whole(size.k),
                         pool.threads());
  }
}

template <typename Product>
std::unique_ptr<Kernel> make_grouped_matmul(const KernelRequest& request, Pool& pool) {
  if (!takes<Product>(request) || !pays<Product>(request, pool)) return nullptr;
  return std::make_unique<GroupedMatmul<Product>>(request, pool);
}

template <typename Product>
std::unique_ptr<Kernel> make_grouped_outer(const KernelRequest& request, Pool& pool) {
  if (!takes<Product>(request) || !pays<Product>(request, pool)) return nullptr;
  return std::make_unique<GroupedOuter<Product>>(request, pool);
}

constexpr std::array<KernelEntry, 10> kGrouped = {
    {{&kGroupedMatmul, make_grouped_matmul<TileGemm<Bf16, Bf16>>, Isa::Amx, true},
     {&kGroupedMatmul, make_grouped_matmul<DotGemm<Bf16>>, Isa::Avx512Bf16, true},
     {&kGroupedMatmul, make_grouped_matmul<AmxGemm>, Isa::Amx, false, F32Products::Amx},
     {&kGroupedMatmul, make_grouped_matmul<PanelGemm>},
     {&kGroupedMatmul, make_grouped_matmul<Gemm>},
     {&kGroupedOuter, make_grouped_outer<TileGemm<Bf16, float>>, Isa::Amx, true},
     {&kGroupedOuter, make_grouped_outer<DotGemm<float>>, Isa::Avx512Bf16, true},
     {&kGroupedOuter, make_grouped_outer<AmxGemm>, Isa::Amx, false, F32Products::Amx},
     {&kGroupedOuter, make_grouped_outer<PanelGemm>},
     {&kGroupedOuter, make_grouped_outer<Gemm>}}};

}  // namespace

std::span<const KernelEntry> grouped_kernels() { return kGrouped; }

}  // namespace tessera::cpu
