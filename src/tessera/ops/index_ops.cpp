#include "tessera/ops/index_ops.h"

#include <algorithm>

#include "tessera/ops/reference.h"

namespace tessera {

namespace {

void require_ids(const OpCall& c, int operand) {
  require(c.in(operand).dtype == DType::I32, c.op().name, ": ids are ", c.in(operand),
          "; cast them to i32");
}

/// `shape` without its last dim.
Shape leading(Shape shape) {
  shape.erase(shape.ndim() - 1);
  return shape;
}

/// The place of a logical index in one rank's part of a dim, or -1 where another rank (or nobody)
/// holds it. Ids beyond the extent are garbage, and whoever looks them up must not be led out of
/// bounds.
std::int64_t local_place(std::int64_t index, const RefOperand& operand, int dim) {
  const std::int64_t local = index - operand.offset[dim];
  return local >= 0 && local < operand.valid[dim] ? local : -1;
}

void gather_reference(RefCall& c) {
  with_element(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* ids = c.in<std::int32_t>(0);
    const T* table = c.in<T>(1);
    T* y = c.out<T>(0);
    const std::int64_t width = c.in_shape(1)[1];
    for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i) {
      const std::int64_t row = local_place(ids[i], c.ins[1], 0);
      if (row < 0)
        std::fill_n(y + i * width, width, T(0));
      else
        std::copy_n(table + row * width, width, y + i * width);
    }
  });
}

void scatter_add_reference(RefCall& c) {
  with_number(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* ids = c.in<std::int32_t>(0);
    const T* dy = c.in<T>(1);
    T* table = c.out<T>(0);
    const std::int64_t width = c.out_shape(0)[1];
    std::fill_n(table, c.out_shape(0).numel(), T(0));
    for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i) {
      const std::int64_t row = local_place(ids[i], c.outs[0], 0);
      for (std::int64_t k = 0; row >= 0 && k < width; ++k)
        table[row * width + k] += dy[i * width + k];
    }
  });
}

void pick_reference(RefCall& c) {
  with_element(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in<T>(0);
    const auto* ids = c.in<std::int32_t>(1);
    T* y = c.out<T>(0);
    const int last = c.in_shape(0).ndim() - 1;
    for (std::int64_t i = 0, n = c.in_shape(1).numel(); i < n; ++i) {
      const std::int64_t k = local_place(ids[i], c.ins[0], last);
      y[i] = k < 0 ? T(0) : x[i * c.in_shape(0)[last] + k];
    }
  });
}

/// `value(i)` at the place that id i names, zeros elsewhere.
template <typename T, typename F>
void place_values(RefCall& c, F&& value) {
  const auto* ids = c.in<std::int32_t>(0);
  T* y = c.out<T>(0);
  const int last = c.out_shape(0).ndim() - 1;
  std::fill_n(y, c.out_shape(0).numel(), T(0));
  for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i) {
    const std::int64_t k = local_place(ids[i], c.outs[0], last);
    if (k >= 0) y[i * c.out_shape(0)[last] + k] = value(i);
  }
}

void place_reference(RefCall& c) {
  with_element(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* dy = c.in<T>(1);
    place_values<T>(c, [&](std::int64_t i) { return dy[i]; });
  });
}

void one_hot_reference(RefCall& c) {
  with_element(c.outs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    place_values<T>(c, [](std::int64_t) { return T(1); });
  });
}

void iota_reference(RefCall& c) {
  with_number(c.outs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* y = c.out<T>(0);
    const int dim = static_cast<int>(c.call.integer("dim"));
    const std::int64_t first = c.outs[0].offset[dim];
    for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
      y[i] = static_cast<T>(first + at[dim]);
    });
  });
}

/// The ids, and what they name: read, then written.
template <int kIds>
double bytes_named(const OpCall& c) {
  return static_cast<double>(c.in(kIds).bytes() + 2 * c.out(0).bytes());
}

double one_per_cotangent(const OpCall& c) { return static_cast<double>(c.in(1).numel()); }

/// Says that a gradient shares the factor names of the forward node that made `result`.
Value like(Value gradient, Value result) {
  gradient.builder().set_like(gradient, result.id().node);
  return gradient;
}

}  // namespace

constinit const OpDef kGather = {
    .name = "gather",
    .doc = "rows of a table named by ids; ids out of range read zeros",
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      require(c.in(1).ndim() == 2, "gather: the table is ", c.in(1),
              "; it must have two dims, [rows, width]");
      Shape shape = c.in(0).shape;
      shape.push_back(c.in(1).shape[1]);
      return {{c.in(1).dtype, shape, {}}};
    },
    // A rank that holds some rows reads zeros for the others: the sum over ranks is the row.
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("..., v d -> ... d | each 1", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (g.wants(1))
        g.din(1) = like(scatter_add(g.in(0), g.dout(0), g.in(1).shape()[0], {}), g.out(0));
    },
    .bytes = bytes_named<0>,
    .reference = {gather_reference, gather_reference},
    .any_padding = 1,
};

constinit const OpDef kScatterAdd = {
    .name = "scatter_add",
    .doc =
        "adds rows into a zero table at ids, in the order of ids; ids out of range write nothing",
    .attrs = {{"rows", AttrKind::Int, 0}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      require(c.in(1).ndim() > 0 && leading(c.in(1).shape) == c.in(0).shape,
              "scatter_add: ids are ", c.in(0), ", rows to add are ", c.in(1),
              "; give one row for each id");
      return {{c.in(1).dtype, {c.integer("rows"), c.in(1).shape.back()}, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("..., ... d -> v d | each 1", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (g.wants(1)) g.din(1) = like(gather(g.in(0), g.dout(0), {}), g.out(0));
    },
    .flops = one_per_cotangent,
    .reference = {scatter_add_reference, scatter_add_reference},
    .any_padding = 0,
};

constinit const OpDef kPick = {
    .name = "pick",
    .doc = "one element of each row, named by ids; ids out of range read zeros",
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 1);
      require(c.in(0).ndim() > 0 && leading(c.in(0).shape) == c.in(1).shape, "pick: x is ", c.in(0),
              ", ids are ", c.in(1), "; give one id for each row");
      return {{c.in(0).dtype, c.in(1).shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... v, ... -> ... | each 0", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (g.wants(0))
        g.din(0) = like(place(g.in(1), g.dout(0), g.in(0).shape().back(), {}), g.out(0));
    },
    .bytes = bytes_named<1>,
    .reference = {pick_reference, pick_reference},
    .any_padding = 0,
};

constinit const OpDef kPlace = {
    .name = "place",
    .doc = "each element at the place in a row that its id names, zeros elsewhere",
    .attrs = {{"size", AttrKind::Int, -1}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      require(c.in(0).shape == c.in(1).shape, "place: ids are ", c.in(0), ", elements are ",
              c.in(1), "; give one element for each id");
      Shape shape = c.in(0).shape;
      shape.push_back(c.integer("size"));
      return {{c.in(1).dtype, shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("..., ... -> ... v | each 1", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (g.wants(1)) g.din(1) = like(pick(g.dout(0), g.in(0), {}), g.out(0));
    },
    .reference = {place_reference, place_reference},
};

constinit const OpDef kOneHot = {
    .name = "one_hot",
    .doc = "1 where the last dim's index equals the id, else 0",
    .attrs = {{"size", AttrKind::Int, -1}, {"dtype", AttrKind::DType}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      Shape shape = c.in(0).shape;
      shape.push_back(c.integer("size"));
      return {{c.dtype("dtype"), shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors { return Factors::parse("... -> ... v", c.ndims()); },
    .reference = {one_hot_reference, one_hot_reference},
};

constinit const OpDef kIota = {
    .name = "iota",
    .doc = "the index along one dim",
    .attrs = {{"shape", AttrKind::Ints}, {"dim", AttrKind::Int}, {"dtype", AttrKind::DType}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const Shape shape(c.integers("shape"));
      require(c.integer("dim") >= 0 && c.integer("dim") < shape.ndim(), "iota: there is no dim ",
              c.integer("dim"), " in ", shape);
      require(c.dtype("dtype") != DType::Bool, "iota: bool cannot hold indices; ask for i32");
      return {{c.dtype("dtype"), shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors { return Factors::parse("-> ...", c.ndims()); },
    .reference = {iota_reference, iota_reference},
};

Value gather(Value ids, Value table, Where where) {
  return ids.builder().add(kGather, {ids, table}, {}, where);
}

Value scatter_add(Value ids, Value dy, std::int64_t rows, Where where) {
  return ids.builder().add(kScatterAdd, {ids, dy}, {rows}, where);
}

Value pick(Value x, Value ids, Where where) { return x.builder().add(kPick, {x, ids}, {}, where); }

Value place(Value ids, Value dy, std::int64_t size, Where where) {
  return ids.builder().add(kPlace, {ids, dy}, {size}, where);
}

Value one_hot(Value ids, std::int64_t size, DType dtype, Where where) {
  return ids.builder().add(kOneHot, {ids}, {size, dtype}, where);
}

Value iota(Builder& builder, Shape shape, int dim, DType dtype, Where where) {
  const std::int64_t positive = dim < 0 ? dim + shape.ndim() : dim;
  return builder.add(
      kIota, {}, {std::vector<std::int64_t>(shape.begin(), shape.end()), positive, dtype}, where);
}

}  // namespace tessera
