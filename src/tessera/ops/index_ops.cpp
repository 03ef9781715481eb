#include "tessera/ops/index_ops.h"

#include <algorithm>
#include <limits>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_impl.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/result_dtype.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

using index::bytes_named;
using index::leading;
using index::like;
using index::local_place;
using index::one_per_cotangent;
using index::require_ids;

int table_dim(const OpCall& c) { return static_cast<int>(c.integer("dim")); }

/// A table as [outer, rows, inner]: rows are named by ids.
struct Table {
  std::int64_t outer = 1, rows = 1, inner = 1;
  Table(const Shape& shape, int dim) : rows(shape[dim]) {
    for (int d = 0; d < dim; ++d) outer *= shape[d];
    for (int d = dim + 1; d < shape.ndim(); ++d) inner *= shape[d];
  }
};

void gather_reference(RefCall& c) {
  with_element(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* ids = c.in<std::int32_t>(0);
    const T* x = c.in<T>(1);
    T* y = c.out<T>(0);
    const int dim = table_dim(c.call);
    const Table table(c.in_shape(1), dim);
    for (std::int64_t o = 0; o < table.outer; ++o) {
      for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i, y += table.inner) {
        const std::int64_t row = local_place(ids[i], c.ins[1], dim);
        if (row < 0)
          std::fill_n(y, table.inner, T(0));
        else
          std::copy_n(x + (o * table.rows + row) * table.inner, table.inner, y);
      }
    }
  });
}

void scatter_add_reference(RefCall& c) {
  with_number(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* ids = c.in<std::int32_t>(0);
    const T* dy = c.in<T>(1);
    T* x = c.out<T>(0);
    const int dim = table_dim(c.call);
    const Table table(c.out_shape(0), dim);
    if (c.num_in() > 2)
      std::copy_n(c.in<T>(2), c.out_shape(0).numel(), x);
    else
      std::fill_n(x, c.out_shape(0).numel(), T(0));
    for (std::int64_t o = 0; o < table.outer; ++o) {
      for (std::int64_t i = 0, n = c.in_shape(0).numel(); i < n; ++i, dy += table.inner) {
        const std::int64_t row = local_place(ids[i], c.outs[0], dim);
        for (std::int64_t k = 0; row >= 0 && k < table.inner; ++k)
          x[(o * table.rows + row) * table.inner + k] += dy[k];
      }
    }
  });
}

/// Names of a table's dims in the rule of gather, before and behind the dim `v` that ids name.
struct TableNames {
  std::string before, behind;
  TableNames(int ndim, int dim) {
    for (int d = 0; d < dim; ++d) before += text("o", d, " ");
    for (int d = dim + 1; d < ndim; ++d) behind += ndim == dim + 2 ? " d" : text(" d", d - dim - 1);
  }
  std::string table() const { return before + "v" + behind; }
  std::string gathered() const { return before + "..." + behind; }
};

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

}  // namespace

constinit const OpDef kGather = {
    .name = "gather",
    .doc = "rows of a table, along one of its dims, named by ids; ids out of range read zeros",
    .attrs = {{"dim", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      const TensorType& table = c.in(1);
      const std::int64_t dim = c.integer("dim");
      require(dim >= 0 && dim < table.ndim(), "gather: there is no dim ", dim, " in the table, ",
              table);
      Shape shape;
      for (int d = 0; d < dim; ++d) shape.push_back(table.shape[d]);
      for (const std::int64_t size : c.in(0).shape) shape.push_back(size);
      for (int d = table_dim(c) + 1; d < table.ndim(); ++d) shape.push_back(table.shape[d]);
      return {{table.dtype, shape, {}}};
    },
    // A rank that holds some rows reads zeros for the others: the sum over ranks is the row.
    .factors = [](const OpCall& c) -> Factors {
      const TableNames names(c.in(1).ndim(), table_dim(c));
      return Factors::parse(text("..., ", names.table(), " -> ", names.gathered(), " | each 1"),
                            c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      if (!g.wants(1)) return;
      const std::int64_t dim = g.call.integer("dim"), rows = g.in(1).shape()[table_dim(g.call)];
      g.din(1) =
          like(g.dout(0).builder().add(kScatterAdd, {g.in(0), g.dout(0)}, {rows, dim}), g.out(0));
    },
    .bytes = bytes_named<0>,
    .reference = {gather_reference, gather_reference},
    .any_padding = 1,
};

constinit const OpDef kScatterAdd = {
    .name = "scatter_add",
    .doc =
        "adds rows at ids, in the order of ids, into a zero table or onto operand 2; ids out of "
        "range write nothing",
    .attrs = {{"rows", AttrKind::Int, AttrDef::kNamedDim}, {"dim", AttrKind::Int}, kResultDType},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_ids(c, 0);
      const Shape &ids = c.in(0).shape, &dy = c.in(1).shape;
      const std::int64_t dim = c.integer("dim");
      bool fits = dim >= 0 && dim + ids.ndim() <= dy.ndim();
      for (int d = 0; fits && d < ids.ndim(); ++d) fits = dy[static_cast<int>(dim) + d] == ids[d];
      require(fits, "scatter_add: ids are ", c.in(0), ", rows to add are ", c.in(1), ", from dim ",
              dim, " on; give one row for each id");
      Shape shape;
      for (int d = 0; d < dim; ++d) shape.push_back(dy[d]);
      shape.push_back(c.integer("rows"));
      for (int d = table_dim(c) + ids.ndim(); d < dy.ndim(); ++d) shape.push_back(dy[d]);
      const TensorType table{result_dtype(c, c.in(1).dtype), shape, {}};
      require(c.num_in() < 3 || c.in(2) == table, "scatter_add: the table to add onto is ",
              c.in(c.num_in() - 1), ", rows make one of ", table);
      return {table};
    },
    .factors = [](const OpCall& c) -> Factors {
      const TableNames names(c.out(0).ndim(), table_dim(c));
      if (c.num_in() < 3) {
        return Factors::parse(text("..., ", names.gathered(), " -> ", names.table(), " | each 1"),
                              c.ndims());
      }
      Factors out = Factors::parse(text("..., ", names.gathered(), ", ", names.table(), " -> ",
                                        names.table(), " | joint 1 2"),
                                   c.ndims());
      // Else each part of the ids would be added onto all of the table.
      for (const std::vector<int>& ids : out.ins[0]) {
        for (const int f : ids) out.list[static_cast<std::size_t>(f)].kind = FactorKind::Whole;
      }
      return out;
    },
    // Operand 2 is a pass's, which comes when gradients are there.
    .grad = [](GradCall& g) -> void {
      if (!g.wants(1)) return;
      const Value dout = cast(g.dout(0), g.in(1).dtype());
      g.din(1) = like(gather(g.in(0), dout, table_dim(g.call), {}), g.out(0));
    },
    .flops = one_per_cotangent,
    .reference = {scatter_add_reference, scatter_add_reference},
    .any_padding = 0,
    .in_place = {InPlace{0, 2}},
    .onto = 2,
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
    .attrs = {kShapeOfResult, {"dim", AttrKind::Int}, {"dtype", AttrKind::DType}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const Shape shape(c.integers("shape"));
      require(c.integer("dim") >= 0 && c.integer("dim") < shape.ndim(), "iota: there is no dim ",
              c.integer("dim"), " in ", shape);
      require(c.dtype("dtype") != DType::Bool, "iota: bool cannot hold indices; ask for i32");
      return {{c.dtype("dtype"), shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors { return Factors::parse("-> ...", c.ndims()); },
    .reference = {iota_reference, iota_reference},
    .traits = {.by_place = true},
};

Value gather(Value ids, Value table, Where where) { return gather(ids, table, 0, where); }

Value gather(Value ids, Value table, int dim, Where where) {
  const std::int64_t positive = dim < 0 ? dim + table.ndim() : dim;
  return ids.builder().add(kGather, {ids, table}, {positive}, where);
}

Value scatter_add(Value ids, Value dy, std::int64_t rows, Where where) {
  return ids.builder().add(kScatterAdd, {ids, dy}, {rows, std::int64_t{0}}, where);
}

Value gather_nd(Value indices, Value x, Where where) {
  const Shape &shape = x.shape(), lead = leading(indices.shape());
  const std::int64_t k = indices.ndim() > 0 ? indices.shape().back() : 0;
  require(indices.dtype() == DType::I32 && k >= 1 && k <= x.ndim(), "gather_nd: indices are ",
          indices.type(), ", x is ", x.type(),
          "; indices are i32 [..., k], where k is at least 1 and at most the number of dims of x");
  Shape table = {1};  // the first k dims as one
  for (int d = 0; d < shape.ndim(); ++d) {
    if (d < k)
      table[0] *= shape[d];
    else
      table.push_back(shape[d]);
  }
  require(table[0] <= std::numeric_limits<std::int32_t>::max(), "gather_nd: the first ", k,
          " dims of ", x.type(), " have ", table[0],
          " elements, more than an i32 can name; gather along one dim after the other");
  const Value zero = x.builder().constant(0, DType::I32);
  Value row, inside;
  for (int d = 0; d < k; ++d) {
    const Value size = x.builder().constant(static_cast<double>(shape[d]), DType::I32);
    const Value index = reshape(slice(indices, -1, d, 1, where), lead, where);
    const Value fits = logical_and(less_equal(zero, index), less(index, size));
    const Value place = select(fits, index, zero);  // no product of what is out of range
    row = d == 0 ? place : row * size + place;
    inside = d == 0 ? fits : logical_and(inside, fits);
  }
  const Value nothing = x.builder().constant(-1, DType::I32);
  return gather(select(inside, row, nothing), reshape(x, table, where), where);
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
