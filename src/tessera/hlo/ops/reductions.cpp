/// Reductions, and products, which are sums too.

#include <functional>
#include <tuple>

#include "tessera/hlo/op_call.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/tensor/monoid.h"

namespace tessera::hlo {

namespace {

void write_reduce(Writing& w) {
  w.out(w.code.reduce(w.in(0), w.call.integers("dims"), parse_monoid(w.entry.word),
                      w.call.flag("keep")));
}

void write_broadcast(Writing& w) {
  w.out(w.code.broadcast(w.in(0), Shape(w.call.integers("shape"))));
}

void write_sum_squares(Writing& w) {
  std::vector<std::int64_t> dims;
  for (int d = 0; d < w.in(0).ndim(); ++d) dims.push_back(d);
  w.out(w.code.sum(w.in(0) * w.in(0), dims));
}

/// Products of 16-bit floats are summed in f32, onto the third operand where there is one, and
/// rounded once.
void write_matmul(Writing& w) {
  const std::string& rule = w.call.string("rule");
  const Element to = w.result_element(0);
  if (w.num_in() == 2) return w.out(w.code.einsum(rule, w.in(0), w.in(1), to));
  const Value y = w.code.einsum(rule, w.in(0), w.in(1), computed_in(to));
  w.out(w.code.convert(y + w.code.wide(w.in(2)), to));
}

/// Rows of a product by groups: [ids, n], and which group of this rank each belongs to.
struct Grouped {
  Writing& w;
  std::int64_t ids;
  Value place, here;

  Grouped(Writing& writing, const Result& groups)
      : w(writing), ids(w.in(0).shape().numel()), place(w.in(0)), here(w.in(0)) {
    std::tie(place, here) = w.e.local_place(w.in(0), groups, 0);
    place = w.code.convert(w.code.reshape(place, {ids}), Element::I64);
    here = w.code.reshape(here, {ids});
  }
  /// An operand with a row for each id.
  Value rows(int i) const {
    Value x = w.in(i);
    if (x.ndim() == w.in(0).ndim()) {  // one for all ids of the last dim
      Shape each = w.in(0).shape();
      each.push_back(x.shape().back());
      std::vector<int> dims;
      for (int d = 0; d < each.ndim(); ++d) {
        if (d != each.ndim() - 2) dims.push_back(d);
      }
      x = w.code.broadcast_dims(x, each, dims);
    }
    return w.code.reshape(x, {ids, x.shape().back()});
  }
  /// Zeros in the rows of other groups.
  Value of_group(const Value& rows, const Value& group) const {
    const Value mine = eq(place, w.code.broadcast(group, {ids})) & here;
    return w.code.select(w.code.broadcast_dims(mine, rows.shape(), {0}), rows, 0.0);
  }
  /// One group after another: what is added up, or put together, on the way.
  Value each(std::int64_t groups, const Value& start,
             const std::function<Value(const Value& group, const Value& so_far)>& step) const {
    return w.code.loop(
        {w.code.constant(0, Element::I64), start},
        [&](const Values& v) { return v[0] < static_cast<double>(groups); },
        [&](const Values& v) {
          return Values{v[0] + 1.0, step(v[0], v[1])};
        })[1];
  }
};

/// Every group's matrix times all rows, of which its own are added: StableHLO has no product of rows by
/// groups. A matrix that is not finite is of no number in the others' rows.
void write_grouped_matmul(Writing& w) {
  const Grouped rows(w, w.operand(2));
  const Value x = rows.rows(1), &all = w.in(2);
  const Shape &matrices = all.shape(), &out = w.result(0).type.shape;
  const std::string rule = w.call.flag("trans_w") ? "n a, b a -> n b" : "n a, a b -> n b";
  const Value y = rows.each(
      matrices[0], w.code.constant(0, Element::F32, {rows.ids, out.back()}),
      [&](const Value& group, const Value& so_far) {
        const Shape one{1, matrices[1], matrices[2]};
        const Value matrix =
            w.code.reshape(w.code.dynamic_slice(all, 0, group, one), {matrices[1], matrices[2]});
        return so_far + rows.of_group(w.code.einsum(rule, x, matrix, Element::F32), group);
      });
  w.out(w.code.convert(w.code.reshape(y, out), w.result_element(0)));
}

void write_grouped_outer(Writing& w) {
  const Grouped rows(w, w.result(0));
  const Value p = rows.rows(1), q = rows.rows(2);
  const Shape& out = w.result(0).type.shape;
  const Value y = rows.each(
      out[0], w.code.constant(0, Element::F32, out), [&](const Value& group, const Value& so_far) {
        const Value matrix =
            w.code.einsum("n a, n b -> a b", rows.of_group(p, group), rows.of_group(q, group),
                          Element::F32);
        return w.code.dynamic_update(so_far, w.code.reshape(matrix, {1, out[1], out[2]}), 0, group);
      });
  const Value all = w.num_in() > 3 ? y + w.code.wide(w.in(3)) : y;
  w.out(w.code.convert(all, w.result_element(0)));
}

constinit const Emission kReductions[] = {
    {&kSum, write_reduce, "sum", Numbers::Wide},
    {&kMax, write_reduce, "max", Numbers::Wide},
    {&kMin, write_reduce, "min", Numbers::Wide},
    {&kSumSquares, write_sum_squares, "", Numbers::Wide},
    {&kBroadcast, write_broadcast},
};

constinit const Emission kProducts[] = {{&kMatmul, write_matmul},
                                        {&kGroupedMatmul, write_grouped_matmul},
                                        {&kGroupedOuter, write_grouped_outer}};

}  // namespace

std::span<const Emission> reduction_emissions() { return kReductions; }
std::span<const Emission> product_emissions() { return kProducts; }

}  // namespace tessera::hlo
