#include "tessera/ops/shape_ops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

using Ints = std::vector<std::int64_t>;

int dim_of(const OpCall& c) { return static_cast<int>(c.integer("dim")); }

void require_dim(const OpCall& c, const TensorType& x) {
  require(c.integer("dim") >= 0 && c.integer("dim") < x.ndim(), c.op().name, ": there is no dim ",
          c.integer("dim"), " in ", x);
}

std::int64_t positive(int dim, Value x) { return dim < 0 ? dim + x.ndim() : dim; }

Shape resized(Shape shape, int dim, std::int64_t size) {
  shape[dim] = size;
  return shape;
}

std::byte* bytes(const RefOperand& operand) { return static_cast<std::byte*>(operand.data); }

/// Copies all of `part` into, or out of, the elements start, start + step, ... of `dim` of `whole`.
void copy_window(const RefOperand& whole, const RefOperand& part, int dim, std::int64_t start,
                 bool out_of_whole, std::int64_t step = 1) {
  const std::size_t size = static_cast<std::size_t>(size_of(part.type.dtype));
  Shape strides = whole.type.shape.strides();
  const std::int64_t first = start * strides[dim];
  strides[dim] *= step;
  for_each_index(part.type.shape, [&](const Shape& at, std::int64_t i) {
    std::int64_t offset = first;
    for (int d = 0; d < at.ndim(); ++d) offset += at[d] * strides[d];
    std::byte *a = bytes(whole) + static_cast<std::size_t>(offset) * size,
              *b = bytes(part) + static_cast<std::size_t>(i) * size;
    out_of_whole ? std::memcpy(b, a, size) : std::memcpy(a, b, size);
  });
}

void fill_zero(const RefOperand& operand) {
  std::memset(operand.data, 0, static_cast<std::size_t>(operand.type.bytes()));
}

/// Where a window of `size` starts that lies inside a dim of `whole`, as near to `start` as can be.
std::int64_t clamped(std::int64_t start, std::int64_t size, std::int64_t whole) {
  return std::clamp<std::int64_t>(start, 0, whole - size);
}

/// Dims other than `dim` pass; `dim` must be whole, in every operand and in the result.
Factors window_factors(const OpCall& c, Linear linear, std::vector<int> linear_operands) {
  const int dim = dim_of(c), ndim = c.out(0).ndim();
  Factors out;
  out.linear = linear;
  out.linear_operands = std::move(linear_operands);
  for (int d = 0; d < ndim; ++d) {
    out.list.push_back(
        {text("d", d), c.out(0).shape[d], d == dim ? FactorKind::Whole : FactorKind::Pass});
  }
  const auto dims = [&](int at_dim) {
    Factors::Dims all;
    for (int d = 0; d < ndim; ++d) all.push_back({d == dim ? at_dim : d});
    return all;
  };
  for (int i = 0; i < c.num_in(); ++i) {
    if (c.in(i).ndim() == 0) {  // a start
      out.ins.emplace_back();
      continue;
    }
    out.ins.push_back(dims(static_cast<int>(out.list.size())));
    out.list.push_back({text("w", i), c.in(i).shape[dim], FactorKind::Whole});
  }
  out.outs.push_back(dims(dim));
  return out;
}

Factors linear_window(const OpCall& c) { return window_factors(c, Linear::Each, {0}); }

/// A window is read and written; what lies around it is not touched.
double bytes_of_window(const OpCall& c) { return 2 * static_cast<double>(c.out(0).bytes()); }

void require_start(const OpCall& c) {
  require(c.in(1) == TensorType{DType::I32, {}, {}}, c.op().name, ": start is ", c.in(1),
          "; it must be an i32 scalar");
}

void require_window(const OpCall& c, std::int64_t start, std::int64_t size, std::int64_t whole) {
  require(start >= 0 && size >= 0 && start + size <= whole, c.op().name, ": the window [", start,
          ", ", start + size, ") of dim ", dim_of(c), " does not lie inside its size ", whole,
          "; x is ", c.in(0));
}

/// As require_window, for `size` elements that lie the attribute `step` apart.
void require_steps(const OpCall& c, std::int64_t size, std::int64_t whole) {
  const std::int64_t start = c.integer("start"), step = c.integer("step");
  require(step >= 1, c.op().name, ": the step is ", step, "; it must be at least 1");
  if (step == 1 || size <= 1) return require_window(c, start, size, whole);
  require(start >= 0 && start < whole && size - 1 <= (whole - 1 - start) / step, c.op().name, ": ",
          size, " elements of dim ", dim_of(c), " from ", start, " on in steps of ", step,
          " do not lie inside its size ", whole, "; x is ", c.in(0));
}

/// slice or pad of `x`, at the start and with the step of `call`.
Value in_steps(const OpDef& op, Value x, const OpCall& call, std::int64_t size) {
  return x.builder().add(op, {x},
                         {call.integer("dim"), call.integer("start"), size, call.integer("step")});
}

void transpose_reference(RefCall& c) {
  const Ints& permutation = c.call.integers("permutation");
  const std::size_t size = static_cast<std::size_t>(size_of(c.ins[0].type.dtype));
  const Shape strides = c.in_shape(0).strides();
  for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
    std::int64_t offset = 0;
    for (int d = 0; d < at.ndim(); ++d)
      offset += at[d] * strides[static_cast<int>(permutation[static_cast<std::size_t>(d)])];
    std::memcpy(bytes(c.outs[0]) + static_cast<std::size_t>(i) * size,
                bytes(c.ins[0]) + static_cast<std::size_t>(offset) * size, size);
  });
}

void slice_reference(RefCall& c) {
  copy_window(c.ins[0], c.outs[0], dim_of(c.call), c.call.integer("start"), true,
              c.call.integer("step"));
}

void pad_reference(RefCall& c) {
  fill_zero(c.outs[0]);
  copy_window(c.outs[0], c.ins[0], dim_of(c.call), c.call.integer("start"), false,
              c.call.integer("step"));
}

void dynamic_slice_reference(RefCall& c) {
  const int dim = dim_of(c.call);
  const std::int64_t start =
      clamped(*c.in<std::int32_t>(1), c.out_shape(0)[dim], c.in_shape(0)[dim]);
  copy_window(c.ins[0], c.outs[0], dim, start, true);
}

void dynamic_pad_reference(RefCall& c) {
  const int dim = dim_of(c.call);
  const std::int64_t start =
      clamped(*c.in<std::int32_t>(1), c.in_shape(0)[dim], c.out_shape(0)[dim]);
  fill_zero(c.outs[0]);
  copy_window(c.outs[0], c.ins[0], dim, start, false);
}

void concat_reference(RefCall& c) {
  const int dim = dim_of(c.call);
  std::int64_t start = 0;
  for (const RefOperand& part : c.ins) {
    copy_window(c.outs[0], part, dim, start, false);
    start += part.type.shape[dim];
  }
}

}  // namespace

constinit const OpDef kTranspose = {
    .name = "transpose",
    .doc = "dims in another order: result dim i is operand dim permutation[i]",
    .attrs = {{"permutation", AttrKind::Ints}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const Ints& permutation = c.integers("permutation");
      Ints sorted = permutation, all(static_cast<std::size_t>(c.in(0).ndim()));
      std::iota(all.begin(), all.end(), 0);
      std::sort(sorted.begin(), sorted.end());
      require(sorted == all, "transpose: ", AttrValue(permutation), " is not an order of the ",
              c.in(0).ndim(), " dims of ", c.in(0), "; name each dim once");
      Shape shape;
      for (const std::int64_t d : permutation) shape.push_back(c.in(0).shape[static_cast<int>(d)]);
      return {{c.in(0).dtype, shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      Factors out;
      out.linear = Linear::Each;
      out.linear_operands = {0};
      out.ins.resize(1);
      out.outs.resize(1);
      for (int d = 0; d < c.in(0).ndim(); ++d) {
        out.list.push_back({text("d", d), c.in(0).shape[d], FactorKind::Pass});
        out.ins[0].push_back({d});
      }
      for (const std::int64_t d : c.integers("permutation"))
        out.outs[0].push_back({static_cast<int>(d)});
      return out;
    },
    .grad = [](GradCall& g) -> void {
      const Ints& permutation = g.call.integers("permutation");
      Ints inverse(permutation.size());
      for (std::size_t i = 0; i < permutation.size(); ++i) {
        inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
      }
      g.din(0) = transpose(g.dout(0), inverse, {});
    },
    .reference = {transpose_reference, transpose_reference},
    .view = [](const OpCall& c, const Shape& strides) -> std::optional<View> {
      View out;
      for (const std::int64_t d : c.integers("permutation"))
        out.strides.push_back(strides[static_cast<int>(d)]);
      return out;
    },
};

constinit const OpDef kSlice = {
    .name = "slice",
    .doc = "`size` elements of one dim, from `start` on, `step` apart",
    .attrs = {{"dim", AttrKind::Int},
              {"start", AttrKind::Int},
              {"size", AttrKind::Int},
              {"step", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_dim(c, c.in(0));
      require_steps(c, c.integer("size"), c.in(0).shape[dim_of(c)]);
      return {{c.in(0).dtype, resized(c.in(0).shape, dim_of(c), c.integer("size")), {}}};
    },
    .factors = linear_window,
    .grad = [](GradCall& g) -> void {
      const std::int64_t size = g.in(0).shape()[dim_of(g.call)];
      g.din(0) = in_steps(kPad, g.dout(0), g.call, size);
    },
    .bytes = bytes_of_window,
    .reference = {slice_reference, slice_reference},
    .view = [](const OpCall& c, const Shape& strides) -> std::optional<View> {
      View out{c.integer("start") * strides[dim_of(c)], strides};
      out.strides[dim_of(c)] *= c.integer("step");
      return out;
    },
};

constinit const OpDef kDynamicSlice = {
    .name = "dynamic_slice",
    .doc =
        "elements [start, start + size) of one dim; the start is a value, clamped so that the "
        "window lies inside",
    .attrs = {{"dim", AttrKind::Int}, {"size", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_dim(c, c.in(0));
      require_start(c);
      require_window(c, 0, c.integer("size"), c.in(0).shape[dim_of(c)]);
      return {{c.in(0).dtype, resized(c.in(0).shape, dim_of(c), c.integer("size")), {}}};
    },
    .factors = linear_window,
    .grad = [](GradCall& g) -> void {
      if (!g.wants(0)) return;
      const std::int64_t dim = g.call.integer("dim"), size = g.in(0).shape()[static_cast<int>(dim)];
      g.din(0) = g.dout(0).builder().add(kDynamicPad, {g.dout(0), g.in(1)}, {dim, size});
    },
    .bytes = bytes_of_window,
    .reference = {dynamic_slice_reference, dynamic_slice_reference},
};

constinit const OpDef kDynamicPad = {
    .name = "dynamic_pad",
    .doc =
        "zeros of `size` in one dim with x at a start that is a value: the gradient of "
        "dynamic_slice",
    .attrs = {{"dim", AttrKind::Int}, {"size", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_dim(c, c.in(0));
      require_start(c);
      require_window(c, 0, c.in(0).shape[dim_of(c)], c.integer("size"));
      return {{c.in(0).dtype, resized(c.in(0).shape, dim_of(c), c.integer("size")), {}}};
    },
    .factors = linear_window,
    .grad = [](GradCall& g) -> void {
      if (!g.wants(0)) return;
      const std::int64_t dim = g.call.integer("dim"), size = g.in(0).shape()[static_cast<int>(dim)];
      g.din(0) = g.dout(0).builder().add(kDynamicSlice, {g.dout(0), g.in(1)}, {dim, size});
    },
    .reference = {dynamic_pad_reference, dynamic_pad_reference},
};

constinit const OpDef kConcat = {
    .name = "concat",
    .doc = "values joined along one dim",
    .attrs = {{"dim", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_dim(c, c.in(0));
      const int dim = dim_of(c);
      std::int64_t size = 0;
      for (int i = 0; i < c.num_in(); ++i) {
        const TensorType& part = c.in(i);
        require(part.dtype == c.in(0).dtype && part.ndim() == c.in(0).ndim() &&
                    resized(part.shape, dim, 0) == resized(c.in(0).shape, dim, 0),
                "concat: operand 0 is ", c.in(0), ", operand ", i, " is ", part,
                "; they may differ only in dim ", dim);
        size += part.shape[dim];
      }
      return {{c.in(0).dtype, resized(c.in(0).shape, dim, size), {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      std::vector<int> all(static_cast<std::size_t>(c.num_in()));
      std::iota(all.begin(), all.end(), 0);
      return window_factors(c, Linear::Joint, std::move(all));
    },
    .grad = [](GradCall& g) -> void {
      const int dim = dim_of(g.call);
      std::int64_t start = 0;
      for (int i = 0; i < g.num_in(); ++i) {
        const std::int64_t size = g.in(i).shape()[dim];
        if (g.wants(i)) g.din(i) = slice(g.dout(0), dim, start, size, {});
        start += size;
      }
    },
    .reference = {concat_reference, concat_reference},
};

constinit const OpDef kPad = {
    .name = "pad",
    .doc =
        "zeros of `size` in one dim with x at `start`, its elements `step` apart: the gradient of "
        "slice",
    .attrs = {{"dim", AttrKind::Int},
              {"start", AttrKind::Int},
              {"size", AttrKind::Int},
              {"step", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      require_dim(c, c.in(0));
      require_steps(c, c.in(0).shape[dim_of(c)], c.integer("size"));
      return {{c.in(0).dtype, resized(c.in(0).shape, dim_of(c), c.integer("size")), {}}};
    },
    .factors = linear_window,
    .grad = [](GradCall& g) -> void {
      const std::int64_t size = g.in(0).shape()[dim_of(g.call)];
      g.din(0) = in_steps(kSlice, g.dout(0), g.call, size);
    },
    .reference = {pad_reference, pad_reference},
};

Value transpose(Value x, Ints permutation, Where where) {
  return x.builder().add(kTranspose, {x}, {std::move(permutation)}, where);
}

Value slice(Value x, int dim, std::int64_t start, std::int64_t size, Where where) {
  return strided_slice(x, dim, start, size, 1, where);
}

Value strided_slice(Value x, int dim, std::int64_t start, std::int64_t size, std::int64_t step,
                    Where where) {
  return x.builder().add(kSlice, {x}, {positive(dim, x), start, size, step}, where);
}

Value dynamic_slice(Value x, int dim, Value start, std::int64_t size, Where where) {
  return x.builder().add(kDynamicSlice, {x, start}, {positive(dim, x), size}, where);
}

Value concat(const std::vector<Value>& values, int dim, Where where) {
  require(!values.empty(), "concat: there is nothing to join; give at least one value");
  return values[0].builder().add(kConcat, values, {positive(dim, values[0])}, where);
}

Value pad(Value x, int dim, std::int64_t start, std::int64_t size, Where where) {
  return x.builder().add(kPad, {x}, {positive(dim, x), start, size, std::int64_t{1}}, where);
}

}  // namespace tessera
