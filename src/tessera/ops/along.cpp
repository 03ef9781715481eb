/// Elements of rows by their places: take_along and its gradient, add_along.

#include <algorithm>

#include "tessera/ops/index_impl.h"
#include "tessera/ops/index_ops.h"

namespace tessera {

namespace {

using index::leading;
using index::local_place;
using index::require_ids;

/// Calls f(place in the row-major x, place in the row-major ids) for every id that names an element
/// of this rank's part of `rows`, and g(place in ids) for the others.
template <typename F, typename G>
void each_along(const RefOperand& rows, const RefOperand& ids, F&& f, G&& g) {
  const int last = rows.type.shape.ndim() - 1;
  const std::int64_t n = rows.type.shape[last], k = ids.type.shape[last];
  for (std::int64_t i = 0, count = ids.type.shape.numel(); i < count; ++i) {
    const std::int64_t place =
        local_place(static_cast<const std::int32_t*>(ids.data)[i], rows, last);
    if (place < 0)
      g(i);
    else
      f(i / k * n + place, i);
  }
}

void take_along_reference(RefCall& c) {
  with_element(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in<T>(0);
    T* y = c.out<T>(0);
    each_along(
        c.ins[0], c.ins[1], [&](std::int64_t from, std::int64_t i) { y[i] = x[from]; },
        [&](std::int64_t i) { y[i] = T(0); });
  });
}

void add_along_reference(RefCall& c) {
  with_number(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* dy = c.in<T>(1);
    T* x = c.out<T>(0);
    std::fill_n(x, c.out_shape(0).numel(), T(0));
    each_along(
        c.outs[0], c.ins[0], [&](std::int64_t to, std::int64_t i) { x[to] += dy[i]; },
        [](std::int64_t) {});
  });
}

}  // namespace

constinit const OpDef kTakeAlong = {
    .name = "take_along",
    .doc = "elements of each row, named by the row's ids; ids out of range read zeros",
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 1);
      require(c.in(0).ndim() > 0 && c.in(0).ndim() == c.in(1).ndim() &&
                  leading(c.in(0).shape) == leading(c.in(1).shape),
              "take_along: x is ", c.in(0), ", ids are ", c.in(1),
              "; they may differ in the last dim only");
      return {{c.in(0).dtype, c.in(1).shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... v, ... k -> ... k | each 0", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (!g.wants(0)) return;
      g.din(0) = index::like(add_along(g.in(1), g.dout(0), g.in(0).shape().back(), {}), g.out(0));
    },
    .bytes = index::bytes_named<1>,
    .reference = {take_along_reference, take_along_reference},
    .any_padding = 0,
};

constinit const OpDef kAddAlong = {
    .name = "add_along",
    .doc = "adds elements into rows of zeros at the row's ids; ids out of range write nothing",
    .attrs = {{"size", AttrKind::Int, -1}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      require(c.in(0).ndim() > 0 && c.in(0).shape == c.in(1).shape, "add_along: ids are ", c.in(0),
              ", elements are ", c.in(1), "; give one element for each id");
      Shape shape = leading(c.in(0).shape);
      shape.push_back(c.integer("size"));
      return {{c.in(1).dtype, shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... k, ... k -> ... v | each 1", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (g.wants(1)) g.din(1) = index::like(take_along(g.dout(0), g.in(0), {}), g.out(0));
    },
    .flops = index::one_per_cotangent,
    .reference = {add_along_reference, add_along_reference},
    .any_padding = 0,
};

Value take_along(Value x, Value ids, Where where) {
  return x.builder().add(kTakeAlong, {x, ids}, {}, where);
}

Value add_along(Value ids, Value dy, std::int64_t size, Where where) {
  return ids.builder().add(kAddAlong, {ids, dy}, {size}, where);
}

}  // namespace tessera
