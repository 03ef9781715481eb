#include "tessera/ops/reduce.h"

#include <algorithm>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/result_dtype.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

using Dims = std::vector<std::int64_t>;

bool contains(const Dims& dims, int d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// `shape` with the reduced dims at size 1.
Shape kept(const Shape& shape, const Dims& dims) {
  Shape out = shape;
  for (const std::int64_t d : dims) out[static_cast<int>(d)] = 1;
  return out;
}

TensorTypes reduced_type(const OpCall& c) {
  const TensorType& x = c.in(0);
  const Dims& dims = c.integers("dims");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    require(dims[i] >= 0 && dims[i] < x.ndim() && (i == 0 || dims[i - 1] < dims[i]), c.op().name,
            ": dims ", AttrValue(dims), " of x, which is ", x, "; give ascending dims from 0 to ",
            x.ndim() - 1);
  }
  Shape shape;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!contains(dims, d))
      shape.push_back(x.shape[d]);
    else if (c.flag("keep"))
      shape.push_back(1);
  }
  return {{x.dtype, shape, {}}};
}

/// Each dim is a factor; those reduced over are missing from the result.
Factors reduction_factors(const OpCall& c, FactorKind reduced) {
  const Dims& dims = c.integers("dims");
  Factors out;
  out.ins.resize(1);
  out.outs.resize(1);
  for (int d = 0; d < c.in(0).ndim(); ++d) {
    out.list.push_back(
        {text("d", d), c.in(0).shape[d], contains(dims, d) ? reduced : FactorKind::Pass});
    out.ins[0].push_back({d});
    if (!contains(dims, d))
      out.outs[0].push_back({d});
    else if (c.flag("keep"))
      out.outs[0].push_back({});
  }
  return out;
}

template <Monoid kMonoid, typename T>
void fold(RefCall& c, T) {
  const Dims& dims = c.call.integers("dims");
  const Shape x_strides = c.in_shape(0).strides(), y_strides = kept(c.in_shape(0), dims).strides();
  const T* x = c.in<T>(0);
  T* y = c.out<T>(0);
  std::fill(y, y + c.out_shape(0).numel(), identity_of<T>(kMonoid));
  for_each_index(c.in_shape(0), [&](const Shape& at, std::int64_t) {
    std::int64_t from = 0, to = 0;
    for (int d = 0; d < at.ndim(); ++d) {
      from += at[d] * x_strides[d];
      if (!contains(dims, d)) to += at[d] * y_strides[d];
    }
    y[to] = combine(kMonoid, y[to], x[from]);
  });
}

void sum_reference(RefCall& c) {
  with_number(c.ins[0].type.dtype, [&](auto zero) { fold<Monoid::Sum>(c, zero); });
}

template <Monoid kMonoid>
void extreme_reference(RefCall& c) {
  with_element(c.ins[0].type.dtype, [&](auto zero) { fold<kMonoid>(c, zero); });
}

double one_per_input(const OpCall& c) { return static_cast<double>(c.in(0).numel()); }

/// A reduced value with its reduced dims put back at size 1, so that it broadcasts against `x`.
Value put_back(Value reduced, const Shape& x, const Dims& dims) {
  const Shape shape = kept(x, dims);
  return reduced.shape() == shape ? reduced : reshape(reduced, shape);
}

void broadcast_reference(RefCall& c) {
  with_element(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in<T>(0);
    T* y = c.out<T>(0);
    const Shape &shape = c.in_shape(0), strides = shape.strides();
    for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
      y[i] = x[broadcast_offset(at, shape, strides)];
    });
  });
}

void add_n_reference(RefCall& c) {
  with_number(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* y = c.out<T>(0);
    for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) {
      T total = c.in<T>(0)[i];
      for (int k = 1; k < c.num_in(); ++k) total += c.in<T>(k)[i];
      y[i] = total;
    }
  });
}

/// The gradient of max and min. To share among all that tie needs no order of the elements: it
/// holds however the dim is cut.
void share_among_ties(GradCall& g) {
  const Value x = g.in(0);
  const Dims dims = g.call.integers("dims");
  const Value hit = cast(equal(x, put_back(g.out(0), x.shape(), dims)), x.dtype());
  const Value share = put_back(g.dout(0), x.shape(), dims) / sum(hit, dims, KeepDim::Yes);
  g.din(0) = hit * share;
}

/// What the functions of the ops build: over no dims, x itself.
Value reduced(const OpDef& op, At x, Dims dims, KeepDim keep) {
  if (dims.empty()) return x;
  return x.builder().add(op, {x}, {std::move(dims), keep == KeepDim::Yes}, x.where);
}

/// As reduced, of bools alone.
Value reduced_bools(const OpDef& op, std::string_view name, At x, Dims dims, KeepDim keep) {
  require(x.dtype() == DType::Bool, name, ": x is ", x.type(),
          ", not bool; compare it with something first");
  return reduced(op, x, std::move(dims), keep);
}

Dims one_dim(Value x, int dim) {
  require(dim >= -x.ndim() && dim < x.ndim(), "there is no dim ", dim, " in ", x.type());
  return {dim < 0 ? dim + x.ndim() : dim};
}

}  // namespace

constinit const OpDef kSum = {
    .name = "sum",
    .doc = "the sum over some dims",
    .attrs = {{"dims", AttrKind::Ints}, {"keep", AttrKind::Bool}, kResultDType},
    .infer = [](const OpCall& c) -> TensorTypes {
      require(c.in(0).dtype != DType::Bool, "sum: x is ", c.in(0), "; cast it to a number first");
      TensorTypes out = reduced_type(c);
      out[0].dtype = result_dtype(c, c.in(0).dtype);
      return out;
    },
    .factors = [](const OpCall& c) -> Factors {
      Factors out = reduction_factors(c, FactorKind::Pass);
      out.linear = Linear::Each;
      out.linear_operands = {0};
      return out;
    },
    .grad = [](GradCall& g) -> void {
      const Shape shape = g.in(0).shape();
      g.din(0) = broadcast_to(
          put_back(cast(g.dout(0), g.in(0).dtype()), shape, g.call.integers("dims")), shape);
    },
    .flops = one_per_input,
    .reference = {sum_reference, sum_reference},
    // Sums over leading dims: of rows, unless a row is so long that its sum fits no near cache.
    .row_dims = [](const OpCall& c) -> int {
      constexpr std::int64_t kLongest = 16384;
      const int dims = static_cast<int>(c.integers("dims").size()), ndim = c.in(0).ndim();
      if (c.flag("keep") || dims == 0 || dims == ndim) return 0;
      std::int64_t row = 1;
      for (int d = dims; d < ndim; ++d) row *= c.in(0).shape[d];
      return row <= kLongest && c.integers("dims").back() == dims - 1 ? ndim - dims : 0;
    },
};

constinit const OpDef kMax = {
    .name = "max",
    .doc = "the largest element over some dims, of bools: any; those that tie share the gradient",
    .attrs = {{"dims", AttrKind::Ints}, {"keep", AttrKind::Bool}},
    .infer = reduced_type,
    .factors = [](const OpCall& c) -> Factors { return reduction_factors(c, FactorKind::Max); },
    .grad = share_among_ties,
    .flops = one_per_input,
    .reference = {extreme_reference<Monoid::Max>, extreme_reference<Monoid::Max>},
};

constinit const OpDef kMin = {
    .name = "min",
    .doc = "the smallest element over some dims, of bools: all; those that tie share the gradient",
    .attrs = {{"dims", AttrKind::Ints}, {"keep", AttrKind::Bool}},
    .infer = reduced_type,
    .factors = [](const OpCall& c) -> Factors { return reduction_factors(c, FactorKind::Min); },
    .grad = share_among_ties,
    .flops = one_per_input,
    .reference = {extreme_reference<Monoid::Min>, extreme_reference<Monoid::Min>},
};

constinit const OpDef kBroadcast = {
    .name = "broadcast",
    .doc = "repeats x along dims of size 1 and new leading dims",
    .attrs = {kShapeOfResult},
    .infer = [](const OpCall& c) -> TensorTypes {
      const Shape shape(c.integers("shape"));
      require(c.in(0).ndim() <= shape.ndim() && broadcast(c.in(0).shape, shape) == shape,
              "broadcast: x is ", c.in(0), ", which does not repeat to ", shape,
              "; each of its sizes must be 1 or the one asked for");
      return {{c.in(0).dtype, shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors { return elementwise_factors(c, Linear::Each, {0}); },
    .grad = [](GradCall& g) -> void { g.din(0) = unbroadcast(g.dout(0), g.in(0).shape()); },
    .reference = {broadcast_reference, broadcast_reference},
    .traits = {.elementwise = true},
};

constinit const OpDef kAddN = {
    .name = "add_n",
    .doc = "the sum of values of one type",
    .infer = [](const OpCall& c) -> TensorTypes {
      for (int i = 1; i < c.num_in(); ++i) {
        require(c.in(i) == c.in(0), "add_n: operand 0 is ", c.in(0), ", operand ", i, " is ",
                c.in(i), "; all must be of one type");
      }
      return {c.in(0)};
    },
    .factors = [](const OpCall& c) -> Factors {
      std::vector<int> all;
      for (int i = 0; i < c.num_in(); ++i) all.push_back(i);
      return elementwise_factors(c, Linear::Joint, all);
    },
    .grad = [](GradCall& g) -> void {
      for (int i = 0; i < g.num_in(); ++i) g.din(i) = g.dout(0);
    },
    .flops = [](const OpCall& c) -> double {
      return (c.num_in() - 1) * static_cast<double>(c.out(0).numel());
    },
    .reference = {add_n_reference, add_n_reference},
    .in_place = {InPlace{0, 0}},
    .traits = {.elementwise = true},
};

Value sum(At x, Dims dims, KeepDim keep) { return reduced(kSum, x, std::move(dims), keep); }

Value sum(At x, int dim, KeepDim keep) { return sum(x, one_dim(x, dim), keep); }

Value sum_all(At x) {
  Dims all;
  for (int d = 0; d < x.ndim(); ++d) all.push_back(d);
  return sum(x, std::move(all));
}

Value max(At x, Dims dims, KeepDim keep) { return reduced(kMax, x, std::move(dims), keep); }

Value max(At x, int dim, KeepDim keep) { return max(x, one_dim(x, dim), keep); }

Value min(At x, Dims dims, KeepDim keep) { return reduced(kMin, x, std::move(dims), keep); }

Value min(At x, int dim, KeepDim keep) { return min(x, one_dim(x, dim), keep); }

Value any(At x, Dims dims, KeepDim keep) {
  return reduced_bools(kMax, "any", x, std::move(dims), keep);
}

Value all(At x, Dims dims, KeepDim keep) {
  return reduced_bools(kMin, "all", x, std::move(dims), keep);
}

Value mean(At x, Dims dims, KeepDim keep) {
  double count = 1;
  for (const std::int64_t d : dims) {
    require(d >= 0 && d < x.ndim(), "mean: there is no dim ", d, " in ", x.type());
    count *= static_cast<double>(x.shape()[static_cast<int>(d)]);
  }
  return At(sum(x, std::move(dims), keep), x.where) / count;
}

Value broadcast_to(Value x, const Shape& shape) {
  return x.shape() == shape ? x
                            : x.builder().add(kBroadcast, {x}, {Dims(shape.begin(), shape.end())});
}

Value add_n(const std::vector<Value>& values) {
  require(!values.empty(), "add_n: there is nothing to add; give at least one value");
  return values.size() == 1 ? values[0] : values[0].builder().add(kAddN, values);
}

}  // namespace tessera
