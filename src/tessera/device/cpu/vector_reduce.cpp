#include "tessera/device/cpu/vector_reduce.h"

#include <algorithm>

#include "tessera/device/cpu/vector_families.h"
#include "tessera/device/cpu/vector_parallel.h"
#include "tessera/device/cpu/vector_targets.h"
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

template <class Op>
float span(const float* x, std::int64_t n) {
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V first = hn::Set(d, Op::kFirst);
  V a = first, b = first, c = first, e = first;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = Op::add(a, hn::LoadU(d, x + i));
    b = Op::add(b, hn::LoadU(d, x + i + lanes));
    c = Op::add(c, hn::LoadU(d, x + i + 2 * lanes));
    e = Op::add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = Op::add(a, hn::LoadU(d, x + i));
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
template <class Op>
void columns(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t n, float* y) {
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

float fold_span(Fold fold, const float* x, std::int64_t n) {
  switch (fold) {
    case Fold::Sum: return span<Sum>(x, n);
    case Fold::SumSquares: return span<SumSquares>(x, n);
    case Fold::Max: return span<Max>(x, n);
    case Fold::Min: return span<Min>(x, n);
  }
  return 0;
}

/// y[n] from `rows` rows that lie `stride` apart.
void fold_columns(Fold fold, const float* x, std::int64_t stride, std::int64_t rows, std::int64_t n,
                  float* y) {
  switch (fold) {
    case Fold::Max: return columns<Max>(x, stride, rows, n, y);
    case Fold::Min: return columns<Min>(x, stride, rows, n, y);
    default: return columns<Sum>(x, stride, rows, n, y);
  }
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

double fold_long(Fold fold, double total, const float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kBlock) {
    total =
        join(fold, total, HWY_DYNAMIC_DISPATCH(fold_span)(fold, x + i, std::min(kBlock, n - i)));
  }
  return total;
}

class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Fold fold, Pool& pool) : fold_(fold), pool_(&pool) {}
  std::string_view name() const override { return "hwy:reduce"; }

 protected:
  Fold fold_;
  Pool* pool_;
};

/// Everything into one number. Blocks do not depend on the number of threads: nor does the result.
class ReduceAll final : public ReduceKernel {
 public:
  ReduceAll(Fold fold, Pool& pool, std::int64_t n) : ReduceKernel(fold, pool), n_(n) {}
  std::int64_t workspace_bytes() const override { return blocks() * std::int64_t{sizeof(double)}; }
  void run(const KernelArgs& args) const override {
    const float* x = static_cast<const float*>(args.ins[0]);
    double* partial = static_cast<double*>(args.workspace);
    pool_->split(blocks(), kGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        partial[b] =
            fold_long(fold_, first_of(fold_), x + b * kBlock, std::min(kBlock, n_ - b * kBlock));
      }
    });
    double total = first_of(fold_);
    for (std::int64_t b = 0; b < blocks(); ++b) total = join(fold_, total, partial[b]);
    *static_cast<float*>(args.outs[0]) = static_cast<float>(total);
  }

 private:
  std::int64_t blocks() const { return (n_ + kBlock - 1) / kBlock; }
  std::int64_t n_;
};

/// [outer, rows, n] -> [rows]: what is left is in the middle, or first (outer = 1).
class ReduceRows final : public ReduceKernel {
 public:
  ReduceRows(Fold fold, Pool& pool, std::int64_t outer, std::int64_t rows, std::int64_t n)
      : ReduceKernel(fold, pool), outer_(outer), rows_(rows), n_(n) {}
  void run(const KernelArgs& args) const override {
    const float* x = static_cast<const float*>(args.ins[0]);
    float* y = static_cast<float*>(args.outs[0]);
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, outer_ * n_));
    pool_->split(rows_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        double total = first_of(fold_);
        for (std::int64_t o = 0; o < outer_; ++o)
          total = fold_long(fold_, total, x + (o * rows_ + row) * n_, n_);
        y[row] = static_cast<float>(total);
      }
    });
  }

 private:
  std::int64_t outer_, rows_, n_;
};

/// [outer, rows, n] -> [outer, n]: threads take columns, or rows where there are few columns.
class ReduceColumns final : public ReduceKernel {
 public:
  ReduceColumns(Fold fold, Pool& pool, std::int64_t outer, std::int64_t rows, std::int64_t n)
      : ReduceKernel(fold, pool), outer_(outer), rows_(rows), n_(n) {
    const int parts = parts_of(rows * n, kGrain, pool.threads());
    if (outer == 1 && n < kNarrow * parts) row_parts_ = parts;
  }
  std::int64_t workspace_bytes() const override {
    return row_parts_ > 1 ? row_parts_ * n_ * std::int64_t{sizeof(float)} : 0;
  }
  void run(const KernelArgs& args) const override {
    const float* x = static_cast<const float*>(args.ins[0]);
    float* y = static_cast<float*>(args.outs[0]);
    if (row_parts_ > 1) return by_rows(x, y, static_cast<float*>(args.workspace));
    // One index for outer and strips of columns.
    const std::int64_t strips = (n_ + kNarrow - 1) / kNarrow;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, rows_ * kNarrow));
    pool_->split(outer_ * strips, grain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t o = begin / strips, strip = begin % strips,
                           stop = std::min(strips, strip + end - begin);
        const std::int64_t column = strip * kNarrow, count = std::min(n_, stop * kNarrow) - column;
        HWY_DYNAMIC_DISPATCH(fold_columns)
        (fold_, x + o * rows_ * n_ + column, n_, rows_, count, y + o * n_ + column);
        begin += stop - strip;
      }
    });
  }

 private:
  void by_rows(const float* x, float* y, float* partial) const {
    run_parts(*pool_, row_parts_, rows_, [&](int part, std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(fold_columns)
      (fold_, x + begin * n_, n_, end - begin, n_, partial + part * n_);
    });
    HWY_DYNAMIC_DISPATCH(fold_columns)(fold_, partial, n_, row_parts_, n_, y);
  }
  std::int64_t outer_, rows_, n_;
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
  if (!all_dense(request) || !first_are_f32(request, 1)) return nullptr;
  const OpCall& call = request.call;
  if (&call.op() == &kSumSquares)
    return std::make_unique<ReduceAll>(Fold::SumSquares, pool, call.in(0).numel());
  const Fold fold = &call.op() == &kSum ? Fold::Sum : &call.op() == &kMax ? Fold::Max : Fold::Min;
  std::vector<Group> groups = groups_of(call);
  const auto size = [&](std::size_t i) { return i < groups.size() ? groups[i].size : 1; };
  if (groups.empty() || (groups.size() == 1 && groups[0].reduced)) {
    return std::make_unique<ReduceAll>(fold, pool, call.in(0).numel());
  }
  const bool inner_reduced = groups.back().reduced;
  if (groups[0].reduced != inner_reduced)
    groups.insert(groups.begin(), {1, inner_reduced});  // now of odd length
  if (groups.size() == 1)
    groups.insert(groups.begin(), {{1, false}, {1, true}});  // nothing is reduced
  if (groups.size() > 3) return nullptr;
  if (inner_reduced) return std::make_unique<ReduceRows>(fold, pool, size(0), size(1), size(2));
  return std::make_unique<ReduceColumns>(fold, pool, size(0), size(1), size(2));
}

}  // namespace tessera::cpu
#endif
