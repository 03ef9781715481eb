/// What reads and writes by index. Ids that this rank does not hold read zeros and write nothing.

#include "tessera/hlo/op_call.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/top_k.h"

namespace tessera::hlo {

namespace {

/// StableHLO clamps places, so rows that are not here are put aside afterwards.
void write_gather(Writing& w) {
  const auto [place, here] = w.e.local_place(w.in(0), w.operand(1), w.dim());
  const Value rows = w.code.gather(w.in(1), place, w.dim());
  std::vector<int> dims;
  for (int d = 0; d < here.ndim(); ++d) dims.push_back(w.dim() + d);
  const Value shown = w.code.broadcast_dims(here, rows.shape(), dims);
  w.out(w.code.select(shown, rows, 0.0));
}

/// Rows that are not here get a place beyond the end, which scatter drops.
void write_scatter_add(Writing& w) {
  const Result& to = w.result(0);
  const auto [place, here] = w.e.local_place(w.in(0), to, w.dim());
  const Value kept = w.code.select(here, place, static_cast<double>(to.type.shape[w.dim()]));
  const Value table =
      w.num_in() > 2 ? w.in(2) : w.code.constant(0, w.in(1).element(), to.type.shape);
  w.out(w.code.scatter_add(table, kept, w.in(1), w.dim()));
}

void write_pick(Writing& w) {
  const Value& x = w.in(0);
  const Value only = w.code.select(w.e.hits(w.in(1), w.operand(0)), x, 0.0);
  w.out(w.code.reduce(only, {x.ndim() - 1}, Monoid::Sum, false));
}

void write_place(Writing& w) {
  w.out(w.code.select(w.e.hits(w.in(0), w.result(0)), w.code.column(w.in(1)), 0.0));
}

void write_one_hot(Writing& w) {
  w.out(w.code.convert(w.e.hits(w.in(0), w.result(0)), w.result_element(0)));
}

/// One row against all ids of it: [..., k, n].
void write_take_along(Writing& w) {
  const Value& x = w.in(0);
  Shape row = x.shape();
  row[x.ndim() - 1] = 1;
  row.push_back(x.shape().back());
  const Value hits = w.e.hits(w.in(1), w.operand(0));
  const Value only = w.code.select(hits, w.code.reshape(x, row), 0.0);
  w.out(w.code.reduce(only, {x.ndim()}, Monoid::Sum, false));
}

void write_add_along(Writing& w) {
  const Value dy = w.code.column(w.in(1));
  const Value only = w.code.select(w.e.hits(w.in(0), w.result(0)), dy, 0.0);
  w.out(w.code.reduce(only, {dy.ndim() - 2}, Monoid::Sum, false));
}

void write_top_k(Writing& w) {
  for (const Value& out : w.code.top_k(w.in(0), w.call.integer("k"))) w.out(out);
}

/// Counts for each id the equal ones of its group that are kept before it.
void write_within_capacity(Writing& w) {
  const Value& ids = w.in(0);
  const std::int64_t n = ids.shape().back() * ids.shape().back(1);
  const Shape flat{n == 0 ? 0 : ids.shape().numel() / n, n}, pairs{flat[0], n, n};
  // Dim 1 is of those that are counted for, dim 2 of those that are counted.
  const auto shown = [&](const Value& x, int dim) {
    return w.code.broadcast_dims(w.code.reshape(x, flat), pairs, {0, dim});
  };
  const Value keys = w.code.wide(w.in(1)), key = shown(keys, 1), other = shown(keys, 2),
              nan = ne(key, key), other_nan = ne(other, other),
              first = w.code.iota(pairs, 2, Element::I32) < w.code.iota(pairs, 1, Element::I32),
              above = (other > key) | (w.code.unary("not", other < key) & first),
              before = w.code.select(nan ^ other_nan, other_nan, above),
              counted = eq(shown(ids, 1), shown(ids, 2)) & before;
  const Value count =
      w.code.reshape(w.code.sum(w.code.convert(counted, Element::I32), {2}), ids.shape());
  const Value kept = count < static_cast<double>(w.call.integer("capacity"));
  w.out(w.code.select((ids >= 0.0) & kept, ids, -1.0));
}

void write_iota(Writing& w) {
  const Value index = w.code.iota(w.result(0).type.shape, w.dim(), Element::I64);
  w.out(w.code.convert(index + w.e.offset(w.result(0), w.dim()), w.result_element(0)));
}

constinit const Emission kIndexed[] = {
    {&kGather, write_gather},
    {&kScatterAdd, write_scatter_add, "", Numbers::Wide},
    {&kPick, write_pick, "", Numbers::AsTheyAre, Source::Formula},
    {&kPlace, write_place, "", Numbers::AsTheyAre, Source::Formula},
    {&kOneHot, write_one_hot, "", Numbers::AsTheyAre, Source::Formula},
    {&kTakeAlong, write_take_along, "", Numbers::Wide, Source::Formula},
    {&kAddAlong, write_add_along, "", Numbers::Wide, Source::Formula},
    {&kTopK, write_top_k},
    {&kWithinCapacity, write_within_capacity},
    {&kIota, write_iota},
};

}  // namespace

std::span<const Emission> index_emissions() { return kIndexed; }

}  // namespace tessera::hlo
