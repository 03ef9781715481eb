#include "tessera/device/cpu/matmul.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "tessera/base/round_up.h"
#include "tessera/device/cpu/grain.h"
#include "tessera/gemm/dot_gemm.h"
#include "tessera/gemm/onednn.h"
#include "tessera/gemm/panels.h"
#include "tessera/gemm/tile_gemm.h"
#include "tessera/ops/matmul.h"

namespace tessera::cpu {

namespace {

/// A dim of the product, possibly several adjacent ones merged: its size and its strides, 0 where
/// an operand lacks it.
struct Dim {
  std::int64_t size = 1, a = 0, b = 0, c = 0;
};
using Dims = std::vector<Dim>;

/// The einsum as loops around one product.
struct Canonical {
  Dims outer;    // loops over blocks of the result
  Dims inner;    // loops over parts of the contraction: they add up
  Dim m, n, k;   // of the product
  bool swapped;  // a and b have changed roles, so that the result's columns are adjacent
};

/// A part of the result's rows or columns: offsets into the operands, and which product makes it.
struct Slice {
  std::int64_t a, b, c;
  std::size_t product;
};

constexpr std::int64_t kGrain = 16;                // rows or columns: a cache line of f32
constexpr std::int64_t kWidestPart = 4096;         // columns
constexpr std::int64_t kCopyGrain = 1 << 16;       // elements that are worth a thread
constexpr std::int64_t kCachedFloats = 128 << 10;  // 512 KiB: half of a core's second cache

std::int64_t count(const Dims& dims) {
  std::int64_t n = 1;
  for (const Dim& dim : dims) n *= dim.size;
  return n;
}

/// Calls f(offset in a, b, c) for the iterations [begin, end) of a loop nest, the last dim fastest.
template <typename F>
void for_each(const Dims& dims, std::int64_t begin, std::int64_t end, F&& f) {
  for (std::int64_t i = begin; i < end; ++i) {
    std::int64_t rest = i, a = 0, b = 0, c = 0;
    for (std::size_t d = dims.size(); d-- > 0;) {
      const std::int64_t at = rest % dims[d].size;
      rest /= dims[d].size;
      a += at * dims[d].a, b += at * dims[d].b, c += at * dims[d].c;
    }
    f(a, b, c);
  }
}

/// The factors as dims, outermost first, neighbours that lie one inside the other in every operand
/// merged.
Dims merged(const std::vector<int>& ids, const std::vector<Dim>& factors,
            std::int64_t Dim::*order) {
  Dims dims;
  for (const int id : ids) {
    if (factors[static_cast<std::size_t>(id)].size != 1)
      dims.push_back(factors[static_cast<std::size_t>(id)]);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](const Dim& x, const Dim& y) { return x.*order > y.*order; });
  Dims out;
  for (const Dim& dim : dims) {
    const bool inside = !out.empty() && out.back().a == dim.a * dim.size &&
                        out.back().b == dim.b * dim.size && out.back().c == dim.c * dim.size;
    if (inside) {
      out.back() = {out.back().size * dim.size, dim.a, dim.b, dim.c};
    } else {
      out.push_back(dim);
    }
  }
  return out;
}

/// True where rows and columns of a matrix have usable strides: one of them 1 (that of a size of 1
/// does not matter).
bool is_matrix(std::int64_t rows, std::int64_t row, std::int64_t cols, std::int64_t col) {
  return (rows == 1 || cols == 1 || row == 1 || col == 1) && (rows == 1 || row > 0) &&
         (cols == 1 || col > 0);
}

std::optional<Canonical> with_product(const Canonical& loops, const Dim& m, const Dim& n,
                                      const Dim& k) {
  Canonical out = loops;
  out.m = m, out.n = n, out.k = k;
  if (!is_matrix(m.size, m.a, k.size, k.a) || !is_matrix(k.size, k.b, n.size, n.b))
    return std::nullopt;
  out.swapped = !(n.size == 1 || n.c == 1);
  if (!out.swapped) return out;
  if (!(m.size == 1 || m.c == 1)) return std::nullopt;
  const auto turn = [](Dim& dim) { std::swap(dim.a, dim.b); };
  std::swap(out.m, out.n);
  for (Dim* dim : {&out.m, &out.n, &out.k}) turn(*dim);
  for (Dims* dims : {&out.outer, &out.inner}) std::for_each(dims->begin(), dims->end(), turn);
  return out;
}

Dims without(const Dims& dims, std::size_t i) {
  Dims out = dims;
  if (i < out.size()) out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
  return out;
}

Dim at_or_unit(const Dims& dims, std::size_t i) { return i < dims.size() ? dims[i] : Dim{}; }

/// Of all choices of one dim each of rows, columns and contraction, the one with the largest
/// product.
std::optional<Canonical> canonical(const Dims& batch, const Dims& ms, const Dims& ns,
                                   const Dims& ks) {
  std::optional<Canonical> best;
  double best_work = -1;
  const auto choices = [](const Dims& dims) { return std::max<std::size_t>(dims.size(), 1); };
  for (std::size_t i = 0; i < choices(ms); ++i) {
    for (std::size_t j = 0; j < choices(ns); ++j) {
      for (std::size_t l = 0; l < choices(ks); ++l) {
        const Dim m = at_or_unit(ms, i), n = at_or_unit(ns, j), k = at_or_unit(ks, l);
        const double work = static_cast<double>(m.size) * static_cast<double>(n.size * k.size);
        if (work <= best_work) continue;
        Canonical loops{batch, without(ks, l), {}, {}, {}, false};
        for (const Dim& dim : without(ms, i)) loops.outer.push_back(dim);
        for (const Dim& dim : without(ns, j)) loops.outer.push_back(dim);
        if (std::optional<Canonical> found = with_product(loops, m, n, k))
          best = found, best_work = work;
      }
    }
  }
  return best;
}

/// Sizes and strides of every factor; nullopt where a contracted dim may hold content beyond its
/// logical extent.
std::optional<std::vector<Dim>> factor_dims(const KernelRequest& request, const MatmulDims& dims) {
  std::vector<Dim> out(dims.factors.list.size());
  const auto place = [&](const Factors::Dims& operand, const Shape& strides,
                         std::int64_t Dim::*stride) {
    for (int d = 0; d < strides.ndim(); ++d) {
      for (const int f : operand[static_cast<std::size_t>(d)])
        out[static_cast<std::size_t>(f)].*stride = strides[d];
    }
  };
  for (std::size_t f = 0; f < out.size(); ++f) out[f].size = dims.factors.list[f].size;
  place(dims.factors.ins[0], strides_of(request, 0), &Dim::a);
  place(dims.factors.ins[1], strides_of(request, 1), &Dim::b);
  place(dims.factors.outs[0], request.call.out(0).shape.strides(), &Dim::c);
  for (int i = 0; i < 2; ++i) {
    for (const std::vector<int>& fs : dims.factors.ins[static_cast<std::size_t>(i)]) {
      if (fs.size() != 1) return std::nullopt;
    }
  }
  return out;
}

/// How a product is cut among threads: parts of its rows, or of its columns, of a multiple of
/// `grain`.
struct Cut {
  bool rows;
  std::int64_t parts, grain;
};

/// Every part packs all of the operand that is not cut: the smaller one, or the one that need not
/// be packed. Rows of an odd length are packed too, but by columns too those are as fast: gradients
/// of logits of 50257 classes within 4 %.
template <typename Product>
Cut cut_of(const Canonical& form, std::int64_t threads) {
  const bool in_place = Product::kReadsRowsInPlace && form.k.a == 1 &&
                        form.n.size >= 2 * Product::kColumnGrain * threads;
  const bool rows = !in_place && form.m.size >= form.n.size;
  return {rows, threads, rows ? Product::kRowGrain : Product::kColumnGrain};
}

template <>
Cut cut_of<Gemm>(const Canonical& form, std::int64_t threads) {
  // oneDNN's batch-reduce loops lose a quarter of their speed where rows of B lie whole 4 KiB
  // pages apart, and a fifth where the contraction is very long. They are not chosen for a part
  // of B's columns: the general loops, which copy B, then run at full speed.
  const bool paged = form.k.b % 1024 == 0 && form.k.size > 1, lengthy = form.k.size >= 16384;
  const bool trap = form.n.b == 1 && form.n.size >= 2 * kGrain && (paged || lengthy);
  const std::int64_t parts = trap ? std::max<std::int64_t>(threads, 2) : threads;
  // Columns first: every part reads all of A. Rows where the result is far taller than wide, or
  // taller at all and B lies in a core's cache: a thread then goes on with rows that it wrote.
  const bool cached = form.k.size * form.n.size <= kCachedFloats;
  const bool rows =
      !trap && (form.m.size >= (cached ? 1 : 4) * form.n.size || form.n.size < 3 * kGrain * parts);
  // The general loops copy some hundred whole rows of their part of B: 24 MiB of 15,000 columns.
  const std::int64_t narrow = round_up((form.n.size + kWidestPart - 1) / kWidestPart, threads);
  const std::int64_t of_all = rows ? parts : std::max(parts, narrow);
  return {rows, of_all, of_all > 1 ? kGrain : 1};
}

/// A class of products: `In` and `Out` are float or Bf16, the elements of both operands and of the
/// result.
template <typename Product>
class MatmulKernel final : public Kernel {
 public:
  using In = typename Product::In;
  using Out = typename Product::Out;

  /// `onto`: the product is added onto operand 2, which is as large as the result.
  MatmulKernel(Canonical form, bool onto, Pool& pool)
      : form_(std::move(form)), onto_(onto), pool_(pool) {
    loops_ = count(form_.outer);
    parts_ = count(form_.inner);
    const double flops = 2.0 * static_cast<double>(form_.m.size) *
                         static_cast<double>(form_.n.size) * static_cast<double>(form_.k.size) *
                         static_cast<double>(loops_ * parts_);
    const auto threads = static_cast<std::int64_t>(
        std::clamp(flops / kFlopsPerThread, 1.0, static_cast<double>(pool.threads())));
    split_loops_ = loops_ % threads == 0 || loops_ >= 4 * threads;
    cut(split_loops_ ? 1 : threads);
    tasks_ = static_cast<int>(
        split_loops_ ? threads : std::min(threads, static_cast<std::int64_t>(slices_.size())));
    for (const Product& product : first_) scratch_ = std::max(scratch_, product.scratch_bytes());
    for (const Product& product : next_) scratch_ = std::max(scratch_, product.scratch_bytes());
    scratch_ = round_up(scratch_, 64);
  }

  std::string_view name() const override { return Product::kMatmulName; }
  std::int64_t workspace_bytes() const override { return scratch_ * tasks_; }

  void run(const KernelArgs& args) const override {
    if (onto_ && args.ins[2] != args.outs[0]) copy_onto(args);
    pool_.run(tasks_, [&](int task) {
      char* const scratch = static_cast<char*>(args.workspace) + task * scratch_;
      const auto part = [&](std::int64_t of, int t) { return of * t / tasks_; };
      if (split_loops_) {
        for (const Slice& slice : slices_)
          run_slice(args, slice, part(loops_, task), part(loops_, task + 1), scratch);
        return;
      }
      const auto slices = static_cast<std::int64_t>(slices_.size());
      for (std::int64_t s = part(slices, task); s < part(slices, task + 1); ++s)
        run_slice(args, slices_[static_cast<std::size_t>(s)], 0, loops_, scratch);
    });
  }

 private:
  /// What the product is added onto, where it does not lie in the result's place.
  void copy_onto(const KernelArgs& args) const {
    const auto* from = static_cast<const Out*>(args.ins[2]);
    auto* const to = static_cast<Out*>(args.outs[0]);
    pool_.split(loops_ * form_.m.size * form_.n.size, kCopyGrain,
                [&](std::int64_t begin, std::int64_t end) {
                  std::copy(from + begin, from + end, to + begin);
                });
  }

  void run_slice(const KernelArgs& args, const Slice& slice, std::int64_t begin, std::int64_t end,
                 char* scratch) const {
    const In* const a = static_cast<const In*>(args.ins[form_.swapped ? 1 : 0]) + slice.a;
    const In* const b = static_cast<const In*>(args.ins[form_.swapped ? 0 : 1]) + slice.b;
    Out* const c = static_cast<Out*>(args.outs[0]) + slice.c;
    for_each(form_.outer, begin, end, [&](std::int64_t ao, std::int64_t bo, std::int64_t co) {
      bool first = true;
      for_each(form_.inner, 0, parts_, [&](std::int64_t ai, std::int64_t bi, std::int64_t) {
        const Product& product = (first ? first_ : next_)[slice.product];
        product.execute(a + ao + ai, b + bo + bi, c + co, scratch);
        first = false;
      });
    });
  }

  /// Cuts the product into at least `threads` parts of its rows or columns (fewer where it is
  /// small).
  void cut(std::int64_t threads) {
    const auto [rows, parts, grain] = cut_of<Product>(form_, threads);
    const std::int64_t size = rows ? form_.m.size : form_.n.size;
    const std::int64_t step = round_up((size + parts - 1) / parts, grain);
    std::vector<std::int64_t> made;  // sizes of the products
    for (std::int64_t begin = 0; begin < size; begin += step) {
      const std::int64_t width = std::min(step, size - begin);
      const auto found = std::find(made.begin(), made.end(), width);
      const auto product = static_cast<std::size_t>(found - made.begin());
      if (found == made.end())
        made.push_back(width), make(rows ? width : form_.m.size, rows ? form_.n.size : width);
      slices_.push_back(rows ? Slice{begin * form_.m.a, 0, begin * form_.m.c, product}
                             : Slice{0, begin * form_.n.b, begin * form_.n.c, product});
    }
  }

  /// Strides of a dim of size 1 are free: they are chosen so that the matrix looks dense.
  void make(std::int64_t m, std::int64_t n) {
    GemmShape shape{m,         n,         form_.k.size, form_.m.a, form_.k.a,
                    form_.k.b, form_.n.b, form_.m.c,    onto_};
    free_strides(m, shape.k, shape.a_row, shape.a_col);
    free_strides(shape.k, n, shape.b_row, shape.b_col);
    if (m == 1) shape.c_row = n;
    first_.emplace_back(shape);
    if (parts_ == 1) return;
    shape.accumulate = true;
    next_.emplace_back(shape);
  }

  static void free_strides(std::int64_t rows, std::int64_t cols, std::int64_t& row,
                           std::int64_t& col) {
    if (rows == 1) row = col == 1 || cols == 1 ? cols : 1;
    if (cols == 1) col = row == 1 && rows > 1 ? rows : 1;
  }

  Canonical form_;
  bool onto_;
  Pool& pool_;
  std::int64_t loops_ = 1, parts_ = 1, scratch_ = 0;
  bool split_loops_ = false;
  int tasks_ = 1;
  std::vector<Slice> slices_;
  std::vector<Product> first_, next_;  // per size of slice; next_ adds to the result
};

template <typename Element>
constexpr DType kDType = std::is_same_v<Element, float> ? DType::F32 : DType::BF16;

/// Nullopt where operands are not of `dtype`, or there are no products in it.
std::optional<Canonical> form_of(const KernelRequest& request, DType dtype) {
  const OpCall& call = request.call;
  if (call.in(0).dtype != dtype || call.in(0).numel() == 0 || call.in(1).numel() == 0)
    return std::nullopt;
  const MatmulDims dims = matmul_dims(call);
  const std::optional<std::vector<Dim>> factors = factor_dims(request, dims);
  if (!factors) return std::nullopt;
  return canonical(merged(dims.batch, *factors, &Dim::c), merged(dims.m, *factors, &Dim::c),
                   merged(dims.n, *factors, &Dim::c), merged(dims.k, *factors, &Dim::a));
}

/// For products of this class on operands that are not packed.
template <typename Product>
std::optional<Canonical> plain_form(const KernelRequest& request) {
  const OpCall& call = request.call;
  const bool plain = call.in(0).layout.plain() && call.in(1).layout.plain();
  if (!plain || call.out(0).dtype != kDType<typename Product::Out>) return std::nullopt;
  return form_of(request, kDType<typename Product::In>);
}

bool adds_onto(const KernelRequest& request) { return request.call.num_in() > 2; }

std::unique_ptr<Kernel> make_onednn_matmul(const KernelRequest& request, Pool& pool) {
  std::optional<Canonical> form = plain_form<Gemm>(request);
  if (!form) return nullptr;
  // A call costs about a microsecond: many tiny products are better off in plain loops.
  const double work = static_cast<double>(form->m.size) * static_cast<double>(form->n.size) *
                      static_cast<double>(form->k.size);
  if (work < 512 && count(form->outer) * count(form->inner) > 1) return nullptr;
  return std::make_unique<MatmulKernel<Gemm>>(std::move(*form), adds_onto(request), pool);
}

/// Of our own products, where that is the faster one.
template <typename Product>
std::unique_ptr<Kernel> make_matmul(const KernelRequest& request, Pool& pool) {
  std::optional<Canonical> form = plain_form<Product>(request);
  if (!form || !Product::pays(form->m.size, form->n.size, form->k.size, pool.threads()))
    return nullptr;
  // Parts of a contraction are added up in the result, which is then no place for rounded sums.
  const bool adds = count(form->inner) > 1 || adds_onto(request);
  if (adds && !std::is_same_v<typename Product::Out, float>) return nullptr;
  return std::make_unique<MatmulKernel<Product>>(std::move(*form), adds_onto(request), pool);
}

constexpr std::array<KernelEntry, 7> kMatmulKernels = {
    {{&kMatmul, make_matmul<TileGemm<Bf16, Bf16>>, Isa::Amx, true},
     {&kMatmul, make_matmul<TileGemm<Bf16, float>>, Isa::Amx, true},
     {&kMatmul, make_matmul<DotGemm<Bf16>>, Isa::Avx512Bf16, true},
     {&kMatmul, make_matmul<DotGemm<float>>, Isa::Avx512Bf16, true},
     {&kMatmul, make_matmul<AmxGemm>, Isa::Amx, false, F32Products::Amx},
     {&kMatmul, make_matmul<PanelGemm>},
     {&kMatmul, make_onednn_matmul}}};

}  // namespace

std::span<const KernelEntry> matmul_kernels() { return kMatmulKernels; }

std::optional<SingleProduct> single_product(const KernelRequest& request) {
  const std::optional<Canonical> form = form_of(request, DType::F32);
  if (!form || adds_onto(request) || count(form->outer) * count(form->inner) != 1)
    return std::nullopt;
  const Dim &m = form->m, &n = form->n, &k = form->k;
  return SingleProduct{{m.size, n.size, k.size, m.a, k.a, k.b, n.b, m.c, false}, form->swapped};
}

}  // namespace tessera::cpu
