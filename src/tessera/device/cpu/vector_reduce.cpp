#include "tessera/device/cpu/vector_reduce.h"

#include <algorithm>

#include "tessera/device/cpu/vector_convert.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/gemm/vector_targets.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/tensor/monoid.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_reduce.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::VFromD<D>;

struct Sum {
  static constexpr float kFirst = 0;
  static HWY_INLINE V add(V total, V x) { return hn::Add(total, x); }
  static HWY_INLINE V join(V a, V b) { return hn::Add(a, b); }
};
struct SumSquares {
  static constexpr float kFirst = 0;
  static HWY_INLINE V add(V total, V x) { return hn::MulAdd(x, x, total); }
  static HWY_INLINE V join(V a, V b) { return hn::Add(a, b); }
};
struct Max {
  static constexpr Monoid kMonoid = Monoid::Max;
  static constexpr float kFirst = identity_of<float>(kMonoid);
  static HWY_INLINE V add(V total, V x) { return larger(total, x); }
  static HWY_INLINE V join(V a, V b) { return larger(a, b); }
};
struct Min {
  static constexpr Monoid kMonoid = Monoid::Min;
  static constexpr float kFirst = identity_of<float>(kMonoid);
  static HWY_INLINE V add(V total, V x) { return smaller(total, x); }
  static HWY_INLINE V join(V a, V b) { return smaller(a, b); }
};

template <class Op, typename T>
float span(const T* x, std::int64_t n) {
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V first = hn::Set(d, Op::kFirst);
  V a = first, b = first, c = first, e = first;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = Op::add(a, load_vector(d, x + i));
    b = Op::add(b, load_vector(d, x + i + lanes));
    c = Op::add(c, load_vector(d, x + i + 2 * lanes));
    e = Op::add(e, load_vector(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = Op::add(a, load_vector(d, x + i));
  if (i < n) {
    const auto rest = static_cast<std::size_t>(n - i);
    b = hn::IfThenElse(hn::FirstN(d, rest), Op::add(b, load_first(d, x + i, rest)), b);
  }
  const V all = Op::join(Op::join(a, b), Op::join(c, e));
  if constexpr (Op::kFirst == 0) {
    return sum_of_lanes(d, all);
  } else {
    HWY_ALIGN float lane[hn::MaxLanes(D())];
    hn::Store(all, d, lane);
    float top = lane[0];  // lane by lane, because MaxOfLanes loses NaN
    for (std::int64_t k = 1; k < lanes; ++k) top = combine(Op::kMonoid, top, lane[k]);
    return top;
  }
}

/// Four rows at a time, so that a sum is a shallow tree and results are read and written a quarter
/// as often.
template <class Op, typename T>
void columns(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t n, float* y) {
  const D d;
  std::fill_n(y, n, Op::kFirst);
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * stride) {
    each_vector(d, n, [&](auto load, auto store) HWY_ATTR {
      const V two = Op::join(load(x), load(x + stride)),
              more = Op::join(load(x + 2 * stride), load(x + 3 * stride));
      store(Op::join(load(y), Op::join(two, more)), y);
    });
  }
  for (; r < rows; ++r, x += stride) {
    each_vector(d, n,
                [&](auto load, auto store) HWY_ATTR { store(Op::join(load(y), load(x)), y); });
  }
}

}  // namespace

/// Numbers of a dtype, one after another.
template <class T>
float span_of(Fold fold, const T* x, std::int64_t n) {
  switch (fold) {
    case Fold::Sum: return span<Sum>(x, n);
    case Fold::SumSquares: return span<SumSquares>(x, n);
    case Fold::Max: return span<Max>(x, n);
    case Fold::Min: return span<Min>(x, n);
  }
  return 0;
}
float fold_span(Fold fold, Numbers x, std::int64_t n) {
  return with_stored(x.dtype, [&](auto zero) { return span_of(fold, x.as<decltype(zero)>(), n); });
}

/// y[n] from `rows` rows that lie `stride` apart.
template <class T>
void columns_of(Fold fold, const T* x, std::int64_t stride, std::int64_t rows, std::int64_t n,
                float* y) {
  switch (fold) {
    case Fold::Max: return columns<Max>(x, stride, rows, n, y);
    case Fold::Min: return columns<Min>(x, stride, rows, n, y);
    default: return columns<Sum>(x, stride, rows, n, y);
  }
}
void fold_columns(Fold fold, Numbers x, std::int64_t stride, std::int64_t rows, std::int64_t n,
                  float* y) {
  with_stored(x.dtype,
              [&](auto zero) { columns_of(fold, x.as<decltype(zero)>(), stride, rows, n, y); });
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

namespace {

HWY_EXPORT(fold_span);
HWY_EXPORT(fold_columns);

constexpr std::int64_t kBlock = 4096;   // elements folded in f32; blocks are joined in f64
constexpr std::int64_t kGrain = 16384;  // elements that are worth a thread
constexpr std::int64_t kNarrow = 64;    // columns; fewer are not split over threads, their rows are

Monoid monoid_of(Fold fold) {
  return fold == Fold::Max ? Monoid::Max : fold == Fold::Min ? Monoid::Min : Monoid::Sum;
}
double join(Fold fold, double a, double b) { return combine(monoid_of(fold), a, b); }
double first_of(Fold fold) { return identity_of<double>(monoid_of(fold)); }

double fold_long(Fold fold, double total, Numbers x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = std::min(kBlock, n - i);
    total = join(fold, total, HWY_DYNAMIC_DISPATCH(fold_span)(fold, x.from(i), count));
  }
  return total;
}

class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Fold fold, const OpCall& call, Pool& pool)
      : fold_(fold), from_(call.in(0).dtype), to_(call.out(0).dtype), pool_(&pool) {}
  std::string_view name() const override { return "hwy:reduce"; }

 protected:
  Numbers operand(const KernelArgs& args) const { return {args.ins[0], from_}; }
  void write(double total, const KernelArgs& args, std::int64_t i) const {
    const float rounded = static_cast<float>(total);
    if (to_ == DType::F32) {
      static_cast<float*>(args.outs[0])[i] = rounded;
    } else {
      narrow(to_, &rounded, static_cast<std::byte*>(args.outs[0]) + i * size_of(to_), 1);
    }
  }
  Fold fold_;
  DType from_, to_;
  Pool* pool_;
};

/// Everything into one number. Blocks do not depend on the number of threads: nor does the result.
class ReduceAll final : public ReduceKernel {
 public:
  ReduceAll(Fold fold, const OpCall& call, Pool& pool)
      : ReduceKernel(fold, call, pool), n_(call.in(0).numel()) {}
  std::int64_t workspace_bytes() const override { return blocks() * std::int64_t{sizeof(double)}; }
  void run(const KernelArgs& args) const override {
    const Numbers x = operand(args);
    double* partial = static_cast<double*>(args.workspace);
    pool_->split(blocks(), kGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t count = std::min(kBlock, n_ - b * kBlock);
        partial[b] = fold_long(fold_, first_of(fold_), x.from(b * kBlock), count);
      }
    });
    double total = first_of(fold_);
    for (std::int64_t b = 0; b < blocks(); ++b) total = join(fold_, total, partial[b]);
    write(total, args, 0);
  }

 private:
  std::int64_t blocks() const { return (n_ + kBlock - 1) / kBlock; }
  std::int64_t n_;
};

/// Dims of an operand, as rows of `n`, in a reduction.
struct Dims {
  std::int64_t outer, rows, n;
};

/// [outer, rows, n] -> [rows]: what is left is in the middle, or first (outer = 1).
class ReduceRows final : public ReduceKernel {
 public:
  ReduceRows(Fold fold, const OpCall& call, const Dims& dims, Pool& pool)
      : ReduceKernel(fold, call, pool), dims_(dims) {}
  void run(const KernelArgs& args) const override {
    const auto& [outer, rows, n] = dims_;
    const Numbers x = operand(args);
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, outer * n));
    pool_->split(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        double total = first_of(fold_);
        for (std::int64_t o = 0; o < dims_.outer; ++o)
          total = fold_long(fold_, total, x.from((o * dims_.rows + row) * dims_.n), dims_.n);
        write(total, args, row);
      }
    });
  }

 private:
  Dims dims_;
};

/// [outer, rows, n] -> [outer, n]: threads take columns, or rows where there are few columns.
class ReduceColumns final : public ReduceKernel {
 public:
  ReduceColumns(Fold fold, const OpCall& call, const Dims& dims, Pool& pool)
      : ReduceKernel(fold, call, pool), dims_(dims) {
    const int parts = parts_of(dims.rows * dims.n, kGrain, pool.threads());
    if (dims.outer == 1 && dims.n < kNarrow * parts) row_parts_ = parts;
  }
  std::int64_t workspace_bytes() const override {
    const std::int64_t partial = row_parts_ > 1 ? row_parts_ * dims_.n : 0;
    return (partial + (to_ == DType::F32 ? 0 : results())) * std::int64_t{sizeof(float)};
  }
  void run(const KernelArgs& args) const override {
    float* const room = static_cast<float*>(args.workspace);
    if (to_ == DType::F32) return fold_to(static_cast<float*>(args.outs[0]), operand(args), room);
    fold_to(room, operand(args), room + results());
    narrow(to_, room, args.outs[0], results());
  }

 private:
  std::int64_t results() const { return dims_.outer * dims_.n; }

  void fold_to(float* y, Numbers x, float* partial) const {
    if (row_parts_ > 1) return by_rows(x, y, partial);
    const auto& [outer, rows, n] = dims_;
    // One index for outer and strips of columns.
    const std::int64_t strips = (n + kNarrow - 1) / kNarrow;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, rows * kNarrow));
    pool_->split(outer * strips, grain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t o = begin / strips, strip = begin % strips,
                           stop = std::min(strips, strip + end - begin);
        const std::int64_t column = strip * kNarrow,
                           count = std::min(dims_.n, stop * kNarrow) - column;
        HWY_DYNAMIC_DISPATCH(fold_columns)
        (fold_, x.from(o * dims_.rows * dims_.n + column), dims_.n, dims_.rows, count,
         y + o * dims_.n + column);
        begin += stop - strip;
      }
    });
  }

  void by_rows(Numbers x, float* y, float* partial) const {
    run_parts(*pool_, row_parts_, dims_.rows, [&](int part, std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(fold_columns)
      (fold_, x.from(begin * dims_.n), dims_.n, end - begin, dims_.n, partial + part * dims_.n);
    });
    HWY_DYNAMIC_DISPATCH(fold_columns)
    (fold_, {partial, DType::F32}, dims_.n, row_parts_, dims_.n, y);
  }

  Dims dims_;
  int row_parts_ = 1;
};

/// Sizes of dims joined where neighbours are both reduced or both kept; the flag says reduced.
struct Group {
  std::int64_t size;
  bool reduced;
};
std::vector<Group> groups_of(const OpCall& call) {
  const std::vector<std::int64_t>& dims = call.integers("dims");
  std::vector<Group> out;
  for (int d = 0; d < call.in(0).ndim(); ++d) {
    const std::int64_t size = call.in(0).shape[d];
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (size == 1) continue;
    if (!out.empty() && out.back().reduced == reduced) {
      out.back().size *= size;
    } else {
      out.push_back({size, reduced});
    }
  }
  return out;
}

}  // namespace

std::unique_ptr<Kernel> make_reduce(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  if (!all_dense(request) || computed_in(call.in(0).dtype) != DType::F32) return nullptr;
  if (&call.op() == &kSumSquares) return std::make_unique<ReduceAll>(Fold::SumSquares, call, pool);
  const Fold fold = &call.op() == &kSum ? Fold::Sum : &call.op() == &kMax ? Fold::Max : Fold::Min;
  std::vector<Group> groups = groups_of(call);
  const auto size = [&](std::size_t i) { return i < groups.size() ? groups[i].size : 1; };
  if (groups.empty() || (groups.size() == 1 && groups[0].reduced))
    return std::make_unique<ReduceAll>(fold, call, pool);
  const bool inner_reduced = groups.back().reduced;
  if (groups[0].reduced != inner_reduced)
    groups.insert(groups.begin(), {1, inner_reduced});  // now of odd length
  if (groups.size() == 1)
    groups.insert(groups.begin(), {{1, false}, {1, true}});  // nothing is reduced
  if (groups.size() > 3) return nullptr;
  const Dims dims{size(0), size(1), size(2)};
  if (inner_reduced) return std::make_unique<ReduceRows>(fold, call, dims, pool);
  return std::make_unique<ReduceColumns>(fold, call, dims, pool);
}

}  // namespace tessera::cpu
#endif
