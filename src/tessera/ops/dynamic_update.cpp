#include "tessera/ops/dynamic_update.h"

#include <algorithm>
#include <cstring>

#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

int updated_dim(const OpCall& c) { return static_cast<int>(c.integer("dim")); }

void update_reference(RefCall& c) {
  const int dim = updated_dim(c.call);
  const RefOperand &x = c.ins[0], &part = c.ins[1], &y = c.outs[0];
  const auto size = static_cast<std::size_t>(size_of(x.type.dtype));
  const std::int64_t start =
      std::clamp<std::int64_t>(*c.in<std::int32_t>(2), 0, x.type.shape[dim] - part.type.shape[dim]);
  if (y.data != x.data)
    std::memcpy(y.data, x.data, static_cast<std::size_t>(x.type.shape.numel()) * size);
  const Shape strides = x.type.shape.strides();
  for_each_index(part.type.shape, [&](const Shape& at, std::int64_t i) {
    std::int64_t to = start * strides[dim];
    for (int d = 0; d < at.ndim(); ++d) to += at[d] * strides[d];
    std::memcpy(static_cast<std::byte*>(y.data) + static_cast<std::size_t>(to) * size,
                static_cast<const std::byte*>(part.data) + static_cast<std::size_t>(i) * size,
                size);
  });
}

}  // namespace

constinit const OpDef kDynamicUpdate = {
    .name = "dynamic_update",
    .doc =
        "x with elements [start, start + size) of one dim replaced; the start is a value, clamped "
        "so that the window lies inside",
    .attrs = {{"dim", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType &x = c.in(0), &update = c.in(1);
      const std::int64_t dim = c.integer("dim");
      require(dim >= 0 && dim < x.ndim(), "dynamic_update: there is no dim ", dim, " in ", x);
      Shape fits = update.shape;
      if (fits.ndim() == x.ndim()) fits[static_cast<int>(dim)] = x.shape[static_cast<int>(dim)];
      require(update.dtype == x.dtype && fits == x.shape && update.shape.numel() <= x.numel(),
              "dynamic_update: x is ", x, ", update is ", update, ", dim is ", dim,
              "; update may differ from x only in that dim, where it must not be longer");
      require(c.in(2) == TensorType{DType::I32, {}, {}}, "dynamic_update: start is ", c.in(2),
              "; it must be an i32 scalar");
      return {x};
    },
    // The dim is whole, as dynamic_slice needs it: the gradient cuts the window out.
    .factors = [](const OpCall& c) -> Factors {
      Factors out;
      const int ndim = c.in(0).ndim(), dim = updated_dim(c);
      Factors::Dims x, update;
      for (int d = 0; d < ndim; ++d) {
        out.list.push_back(
            {text("d", d), c.in(0).shape[d], d == dim ? FactorKind::Whole : FactorKind::Pass});
        x.push_back({d});
        update.push_back({d == dim ? ndim : d});
      }
      out.list.push_back({"w", c.in(1).shape[dim], FactorKind::Whole});
      out.ins = {x, update, {}};
      out.outs = {x};
      out.linear = Linear::Joint;
      out.linear_operands = {0, 1};
      return out;
    },
    .grad = [](GradCall& g) -> void {
      const int dim = updated_dim(g.call);
      const Value dy = g.dout(0), start = g.in(2);
      const TensorType& update = g.in(1).type();
      if (g.wants(0)) {
        const Value zeros = broadcast_to(dy.builder().constant(0, update.dtype), update.shape);
        g.din(0) = dynamic_update(dy, zeros, dim, start, {});
      }
      if (g.wants(1)) g.din(1) = dynamic_slice(dy, dim, start, update.shape[dim], {});
    },
    // Where x is overwritten: the window is read and written.
    .bytes = [](const OpCall& c) -> double { return 2 * static_cast<double>(c.in(1).bytes()); },
    .reference = {update_reference, update_reference},
    .in_place = {InPlace{0, 0}},
};

Value dynamic_update(Value x, Value update, int dim, Value start, Where where) {
  const std::int64_t positive = dim < 0 ? dim + x.ndim() : dim;
  return x.builder().add(kDynamicUpdate, {x, update, start}, {positive}, where);
}

}  // namespace tessera
