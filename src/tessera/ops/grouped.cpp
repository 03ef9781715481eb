#include "tessera/ops/matmul.h"

#include <algorithm>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_impl.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/result_dtype.h"

namespace tessera {

namespace {

using index::leading;
using index::local_place;
using index::require_ids;

/// Whether operand `i` has a row for each id, or one for all ids of the last dim.
bool has_row_per_id(const OpCall& c, int i) { return c.in(i).ndim() > c.in(0).ndim(); }

/// That the operand has rows for the ids.
void require_rows(const OpCall& c, int i) {
  const TensorType &ids = c.in(0), &x = c.in(i);
  const bool fits = ids.ndim() > 0 && x.ndim() > 0 &&
                    (leading(x.shape) == ids.shape || leading(x.shape) == leading(ids.shape));
  require(fits && is_float(x.dtype), c.op().name, ": ids are ", ids, ", rows are ", x,
          "; give floats, a row for each id, or one for all ids of the last dim");
}

/// Names of an operand's dims before its rows' own.
std::string_view row_names(const OpCall& c, int i) {
  return has_row_per_id(c, i) ? "... k" : "...";
}

TensorTypes product_type(const OpCall& c) {
  require_ids(c, 0);
  require_rows(c, 1);
  const TensorType &x = c.in(1), &w = c.in(2);
  const bool trans = c.flag("trans_w");
  require(w.ndim() == 3 && w.dtype == x.dtype && w.shape[trans ? 2 : 1] == x.shape.back(),
          "grouped_matmul: x is ", x, ", w is ", w, "; w is of the same floats, [groups, ",
          trans ? "b, a]" : "a, b]", ", where a is the last size of x");
  Shape shape = c.in(0).shape;
  shape.push_back(w.shape[trans ? 1 : 2]);
  return {{x.dtype, shape, {}}};
}

TensorTypes outer_type(const OpCall& c) {
  require_ids(c, 0);
  require_rows(c, 1);
  require_rows(c, 2);
  const TensorType &p = c.in(1), &q = c.in(2);
  require(p.dtype == q.dtype, "grouped_outer: p is ", p, ", q is ", q,
          "; cast them to one floating dtype");
  const TensorType out{
      result_dtype(c, p.dtype), {c.integer("groups"), p.shape.back(), q.shape.back()}, {}};
  require(c.num_in() < 4 || c.in(3) == out, "grouped_outer: the value to add onto is ",
          c.in(c.num_in() - 1), ", the products are ", out);
  return {out};
}

Factors outer_factors(const OpCall& c) {
  const std::string rule = text("... k, ", row_names(c, 1), " m, ", row_names(c, 2), " n");
  if (c.num_in() < 4)
    return Factors::parse(text(rule, " -> e m n | rows e 1 2 | each 1 2"), c.ndims());
  Factors out = Factors::parse(text(rule, ", e m n -> e m n | rows e 1 2 | joint 1 3"), c.ndims());
  // Else each part of the rows would be added onto all of operand 3.
  for (std::size_t f = 0; f < out.list.size(); ++f) {
    if (out.reduces(static_cast<int>(f), 0)) out.list[f].kind = FactorKind::Whole;
  }
  return out;
}

/// Rows that ids name, in the mean, and what a row costs. On a shard the groups are some of all.
double operations(const OpCall& c, const Shape& matrix, std::int64_t groups_here) {
  const auto all = static_cast<double>(std::max<std::int64_t>(c.integer("of"), 1));
  return 2 * static_cast<double>(c.in(0).numel()) * static_cast<double>(groups_here) / all *
         static_cast<double>(matrix.back()) * static_cast<double>(matrix.back(1));
}

double product_flops(const OpCall& c) { return operations(c, c.in(2).shape, c.in(2).shape[0]); }
double outer_flops(const OpCall& c) { return operations(c, c.out(0).shape, c.out(0).shape[0]); }

/// That of one group, of as many rows as in the mean.
ProductSize mean_product(const OpCall& c, double n, double k) {
  const auto all = static_cast<double>(std::max<std::int64_t>(c.integer("of"), 1));
  return {std::max(1.0, static_cast<double>(c.in(0).numel()) / all), n, k};
}

/// Calls f(row, group) for each id, in order, that names a group which `groups` has along dim 0; row
/// is its place among the ids. g(row) for the others.
template <typename F, typename G>
void each_of_group(const RefOperand& ids, const RefOperand& groups, F&& f, G&& g) {
  const auto* id = static_cast<const std::int32_t*>(ids.data);
  for (std::int64_t i = 0, n = ids.type.shape.numel(); i < n; ++i) {
    const std::int64_t group = local_place(id[i], groups, 0);
    if (group < 0)
      g(i);
    else
      f(i, group);
  }
}

/// By how many ids a row of operand `i` is shared.
std::int64_t ids_per_row(const RefCall& c, int i) {
  const Shape& ids = c.in_shape(0);
  return c.in_shape(i).ndim() > ids.ndim() ? 1 : ids.back();
}

template <typename T>
void product_reference(RefCall& c) {
  const T *x = c.in<T>(1), *w = c.in<T>(2);
  T* y = c.out<T>(0);
  const bool trans = c.call.flag("trans_w");
  const std::int64_t a = c.in_shape(1).back(), b = c.out_shape(0).back(), per = ids_per_row(c, 1);
  each_of_group(
      c.ins[0], c.ins[2],
      [&](std::int64_t i, std::int64_t group) {
        const T *row = x + i / per * a, *matrix = w + group * a * b;
        for (std::int64_t n = 0; n < b; ++n) {
          T sum = 0;
          for (std::int64_t k = 0; k < a; ++k)
            sum += row[k] * matrix[trans ? n * a + k : k * b + n];
          y[i * b + n] = sum;
        }
      },
      [&](std::int64_t i) { std::fill_n(y + i * b, b, T(0)); });
}

template <typename T>
void outer_reference(RefCall& c) {
  const T *p = c.in<T>(1), *q = c.in<T>(2);
  T* y = c.out<T>(0);
  const std::int64_t a = c.in_shape(1).back(), b = c.in_shape(2).back(), p_per = ids_per_row(c, 1),
                     q_per = ids_per_row(c, 2), n = c.out_shape(0).numel();
  if (c.num_in() > 3)
    std::copy_n(c.in<T>(3), n, y);
  else
    std::fill_n(y, n, T(0));
  each_of_group(
      c.ins[0], c.outs[0],
      [&](std::int64_t i, std::int64_t group) {
        const T *left = p + i / p_per * a, *right = q + i / q_per * b;
        T* to = y + group * a * b;
        for (std::int64_t k = 0; k < a; ++k)
          for (std::int64_t m = 0; m < b; ++m) *to++ += left[k] * right[m];
      },
      [](std::int64_t) {});
}

/// The gradient of w [groups, a, b] from rows of its dims.
Value outer(GradCall& g, Value p, Value q) {
  const std::int64_t groups = g.in(2).shape()[0];
  return index::like(
      g.dout(0).builder().add(kGroupedOuter, {g.in(0), p, q}, {groups, g.call.integer("of")}),
      g.out(0));
}

void product_gradient(GradCall& g) {
  const Value dout = cast(g.dout(0), g.in(1).dtype());
  const bool trans = g.call.flag("trans_w");
  if (g.wants(1)) {
    const Value rows = index::like(
        dout.builder().add(
            kGroupedMatmul, {g.in(0), dout, g.in(2)},
            {!trans, g.call.flag("makes_rows"), g.call.flag("reads_rows"), g.call.integer("of")}),
        g.out(0));
    g.din(1) = rows.ndim() > g.in(1).ndim() ? sum(rows, {rows.ndim() - 2}) : rows;
  }
  if (g.wants(2)) g.din(2) = trans ? outer(g, dout, g.in(1)) : outer(g, g.in(1), dout);
}

}  // namespace

constinit const OpDef kGroupedMatmul = {
    .name = "grouped_matmul",
    .doc = "rows times the matrix of a group that an id names; ids out of range give zeros",
    // of: all groups, of which a shard has some.
    .attrs = {{"trans_w", AttrKind::Bool},
              {"reads_rows", AttrKind::Bool},
              {"makes_rows", AttrKind::Bool},
              {"of", AttrKind::Int}},
    .infer = product_type,
    .factors = [](const OpCall& c) -> Factors {
      // Names are those of w's dims, so that gradients share them.
      const bool trans = c.flag("trans_w");
      return Factors::parse(
          text("... k, ", row_names(c, 1), trans ? " n, e m n -> ... k m" : " m, e m n -> ... k n",
               " | ", c.flag("reads_rows") ? "rows e 1 | " : "",
               c.flag("makes_rows") ? "e:one | " : "", "each 1 2"),
          c.ndims());
    },
    .grad = product_gradient,
    .flops = product_flops,
    .product = [](const OpCall& c) -> ProductSize {
      return mean_product(c, static_cast<double>(c.out(0).shape.back()),
                          static_cast<double>(c.in(1).shape.back()));
    },
    .reference = {product_reference<float>, product_reference<double>},
    .arithmetic = Arithmetic::Narrow,
};

constinit const OpDef kGroupedOuter = {
    .name = "grouped_outer",
    .doc =
        "for each group the sum of outer products of the rows whose id names it; added onto "
        "operand "
        "3, if there is one",
    .attrs = {{"groups", AttrKind::Int, 0}, {"of", AttrKind::Int}, kResultDType},
    .infer = outer_type,
    .factors = outer_factors,
    .flops = outer_flops,
    .product = [](const OpCall& c) -> ProductSize {
      return {static_cast<double>(c.out(0).shape[1]), static_cast<double>(c.out(0).shape[2]),
              mean_product(c, 1, 1).m};
    },
    .reference = {outer_reference<float>, outer_reference<double>},
    .in_place = {InPlace{0, 3}},
    .onto = 3,
    .arithmetic = Arithmetic::Narrow,
};

Value grouped_matmul(Value ids, Value x, Value w, GroupedMatmulOptions options, Where where) {
  const std::int64_t groups = w.ndim() > 0 ? w.shape()[0] : 0;
  return x.builder().add(kGroupedMatmul, {ids, x, w},
                         {options.trans_w, options.reads_rows, options.makes_rows, groups}, where);
}

}  // namespace tessera
