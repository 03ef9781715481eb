#include "tessera/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/ops/index_ops.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

void top_k_reference(RefCall& c) {
  with_number(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in<T>(0);
    T* values = c.out<T>(0);
    auto* ids = c.out<std::int32_t>(1);
    const std::int64_t n = c.in_shape(0).back(), k = c.out_shape(0).back();
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    for (std::int64_t row = 0, rows = c.out_shape(0).numel() / k; row < rows; ++row, x += n) {
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](std::int64_t i, std::int64_t j) { return precedes(x[i], i, x[j], j); });
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t place = order[static_cast<std::size_t>(i)];
        values[row * k + i] = x[place];
        ids[row * k + i] = static_cast<std::int32_t>(place);
      }
    }
  });
}

}  // namespace

constinit const OpDef kTopK = {
    .name = "top_k",
    .doc = "the k largest elements of each row, the largest first, and their places",
    .attrs = {{"k", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType& x = c.in(0);
      const std::int64_t k = c.integer("k");
      require(x.ndim() > 0 && x.dtype != DType::Bool && k >= 1 && k <= x.shape.back(),
              "top_k: x is ", x, ", k is ", k,
              "; x is of numbers, and k is between 1 and the size of its last dim");
      Shape shape = x.shape;
      shape[x.ndim() - 1] = k;
      return {{x.dtype, shape, {}}, {DType::I32, shape, {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... v -> ... k, ... k | v:whole k:whole", c.ndims());
    },
    .grad = [](GradCall& g) -> void {
      g.din(0) = add_along(g.out(1), g.dout(0), g.in(0).shape().back(), {});
    },
    // A comparison for each element, and the sorting of a heap.
    .flops = [](const OpCall& c) -> double {
      const double k = static_cast<double>(c.integer("k"));
      return static_cast<double>(c.in(0).numel()) +
             static_cast<double>(c.out(0).numel()) * std::log2(k + 1);
    },
    .reference = {top_k_reference, top_k_reference},
};

TopKResult top_k(Value x, std::int64_t k, Where where) {
  const std::vector<Value> out = x.builder().add_all(kTopK, {x}, {k}, where);
  return {out[0], out[1]};
}

Value arg_max(Value x, int dim, Where where) {
  const int ndim = x.ndim(), d = dim < 0 ? dim + ndim : dim;
  require(d >= 0 && d < ndim, "arg_max: there is no dim ", dim, " in ", x.type());
  std::vector<std::int64_t> last;  // `d` behind the others
  Shape shape;
  for (int i = 0; i < ndim; ++i) {
    if (i == d) continue;
    last.push_back(i);
    shape.push_back(x.shape()[i]);
  }
  last.push_back(d);
  if (d + 1 < ndim) x = transpose(x, last, where);
  return reshape(top_k(x, 1, where).ids, shape, where);
}

}  // namespace tessera
