#include "tessera/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

template <int kPerElement>
double softmax_flops(const OpCall& c) {
  return static_cast<double>(kPerElement) * static_cast<double>(c.in(0).numel());
}

/// Calls f(x, y, n, stride) for every row of x and y along the attribute `dim`.
template <typename T, typename F>
void each_line(RefCall& c, F&& f) {
  const int dim = static_cast<int>(c.call.integer("dim"));
  const Shape& shape = c.in_shape(0);
  Shape rows = shape;
  rows[dim] = 1;
  for_each_index(rows, [&](const Shape& at, std::int64_t) {
    std::int64_t first = 0;
    for (int d = 0; d < at.ndim(); ++d) first += at[d] * shape.strides()[d];
    f(c.in<T>(0) + first, c.out<T>(0) + first, shape[dim], shape.strides()[dim]);
  });
}

template <typename T>
void softmax_reference(RefCall& c) {
  each_line<T>(c, [](const T* x, T* y, std::int64_t n, std::int64_t stride) {
    T top = -std::numeric_limits<T>::infinity(), total = 0;
    for (std::int64_t i = 0; i < n; ++i) top = std::max(top, x[i * stride]);
    for (std::int64_t i = 0; i < n; ++i) total += y[i * stride] = std::exp(x[i * stride] - top);
    for (std::int64_t i = 0; i < n; ++i) y[i * stride] /= total;
  });
}

template <typename T>
void log_softmax_reference(RefCall& c) {
  each_line<T>(c, [](const T* x, T* y, std::int64_t n, std::int64_t stride) {
    T top = -std::numeric_limits<T>::infinity(), total = 0;
    for (std::int64_t i = 0; i < n; ++i) top = std::max(top, x[i * stride]);
    for (std::int64_t i = 0; i < n; ++i) total += std::exp(x[i * stride] - top);
    const T log_total = std::log(total);
    for (std::int64_t i = 0; i < n; ++i) y[i * stride] = x[i * stride] - top - log_total;
  });
}

/// One number per row, with the digits that it is computed with.
TensorType statistic_of_row(const TensorType& type) {
  TensorType out{computed_in(type.dtype), type.shape, {}};
  out.shape.erase(out.ndim() - 1);
  return out;
}

void check_labels(const OpCall& c) {
  const TensorType &logits = c.in(0), &labels = c.in(1);
  require(logits.ndim() >= 1 && is_float(logits.dtype) && labels.dtype == DType::I32 &&
              labels.shape == statistic_of_row(logits).shape,
          c.op().name, ": logits are ", logits, ", labels are ", labels,
          "; labels need dtype i32 and the shape of the logits without the last dim");
}

template <typename T>
void cross_entropy_reference(RefCall& c) {
  const std::int64_t n = c.in_shape(0).back(), ignore = c.call.integer("ignore_index");
  const std::int32_t* labels = c.in<std::int32_t>(1);
  T *loss = c.out<T>(0), *logsumexp = c.out<T>(1);
  for (std::int64_t row = 0, rows = c.in_shape(1).numel(); row < rows; ++row) {
    const T* x = c.in<T>(0) + row * n;
    T top = -std::numeric_limits<T>::infinity(), total = 0;
    for (std::int64_t i = 0; i < n; ++i) top = std::max(top, x[i]);
    for (std::int64_t i = 0; i < n; ++i) total += std::exp(x[i] - top);
    logsumexp[row] = top + std::log(total);
    const std::int64_t label = labels[row];
    const T target = label >= 0 && label < n ? x[label] : T(0);
    loss[row] = label == ignore ? T(0) : logsumexp[row] - target;
  }
}

template <typename T>
void cross_entropy_grad_reference(RefCall& c) {
  const std::int64_t n = c.in_shape(0).back(), ignore = c.call.integer("ignore_index");
  const std::int64_t first = c.ins[0].offset.back();  // of the vocabulary, where it is sharded
  const std::int32_t* labels = c.in<std::int32_t>(1);
  const T *x = c.in<T>(0), *logsumexp = c.in<T>(2), *dloss = c.in<T>(3);
  T* dx = c.out<T>(0);
  for (std::int64_t row = 0, rows = c.in_shape(1).numel(); row < rows; ++row) {
    for (std::int64_t i = 0; i < n; ++i) {
      const T hit = labels[row] == first + i ? T(1) : T(0);
      const T d = dloss[row] * (std::exp(x[row * n + i] - logsumexp[row]) - hit);
      dx[row * n + i] = labels[row] == ignore ? T(0) : d;
    }
  }
}

}  // namespace

constinit const OpDef kSoftmax = {
    .name = "softmax",
    .doc = "exp(x) / sum(exp(x)) over one dim.",
    .attrs = {{"dim", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const std::int64_t dim = c.integer("dim");
      require(is_float(c.in(0).dtype) && dim >= 0 && dim < c.in(0).ndim(), "softmax: x is ",
              c.in(0), ", dim is ", dim, "; x needs a floating dtype and that dim");
      return {c.in(0)};
    },
    // A dim sharded in x stays sharded in y; along `dim`, ranks exchange one max and one sum per
    // row.
    .factors = [](const OpCall& c) -> Factors {
      Factors out = elementwise_factors(c);
      out.list[static_cast<std::size_t>(c.integer("dim"))].kind = FactorKind::Stat;
      return out;
    },
    .expand = [](ExpandCall& e) -> void {
      const int dim = static_cast<int>(e.call.integer("dim"));
      const Value u = exp(e.in(0) - max(e.in(0), dim, KeepDim::Yes));
      e.out(0) = u / sum(u, dim, KeepDim::Yes);
    },
    // dx = y * (dy - sum(y * dy, dim)): needs y, so x is not kept for the backward pass.
    .grad = [](GradCall& g) -> void {
      const Value y = g.out(0), dy = g.dout(0);
      g.din(0) = y * (dy - sum(y * dy, static_cast<int>(g.call.integer("dim")), KeepDim::Yes));
    },
    .flops = softmax_flops<5>,  // max, sub, exp, add, div
    .reference = {softmax_reference<float>, softmax_reference<double>},
    .in_place = {{{0, 0}}},
    .arithmetic = Arithmetic::Wide,
};

constinit const OpDef kLogSoftmax = {
    .name = "log_softmax",
    .doc = "x - logsumexp(x) over one dim.",
    .attrs = {{"dim", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const std::int64_t dim = c.integer("dim");
      require(is_float(c.in(0).dtype) && dim >= 0 && dim < c.in(0).ndim(), "log_softmax: x is ",
              c.in(0), ", dim is ", dim, "; x needs a floating dtype and that dim");
      return {c.in(0)};
    },
    // As softmax.
    .factors = [](const OpCall& c) -> Factors {
      Factors out = elementwise_factors(c);
      out.list[static_cast<std::size_t>(c.integer("dim"))].kind = FactorKind::Stat;
      return out;
    },
    .expand = [](ExpandCall& e) -> void {
      const int dim = static_cast<int>(e.call.integer("dim"));
      const Value u = e.in(0) - max(e.in(0), dim, KeepDim::Yes);
      e.out(0) = u - log(sum(exp(u), dim, KeepDim::Yes));
    },
    // dx = dy - softmax(x) * sum(dy, dim), where softmax(x) is exp(y): x is not kept.
    .grad = [](GradCall& g) -> void {
      const Value y = g.out(0), dy = g.dout(0);
      g.din(0) = dy - exp(y) * sum(dy, static_cast<int>(g.call.integer("dim")), KeepDim::Yes);
    },
    .flops = softmax_flops<5>,  // max, sub, exp, add, sub
    .reference = {log_softmax_reference<float>, log_softmax_reference<double>},
    .in_place = {{{0, 0}}},
    .arithmetic = Arithmetic::Wide,
};

constinit const OpDef kCrossEntropy = {
    .name = "cross_entropy",
    .doc =
        "-log softmax(logits)[label] per row, 0 where the label is ignored; and logsumexp of the "
        "logits.",
    .attrs = {{"ignore_index", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      check_labels(c);
      return {statistic_of_row(c.in(0)), statistic_of_row(c.in(0))};
    },
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... v, ... -> ..., ... | v:stat", c.ndims());
    },
    .expand = [](ExpandCall& e) -> void {
      const Value x = e.in(0), labels = e.in(1);
      Builder& builder = x.builder();
      const Value top = max(x, -1, KeepDim::Yes);
      const Value logsumexp =
          reshape(log(sum(exp(x - top), -1, KeepDim::Yes)) + top, labels.shape());
      const Value counted = not_equal(
          labels,
          builder.constant(static_cast<double>(e.call.integer("ignore_index")), labels.dtype()));
      e.out(0) = select(counted, logsumexp - pick(x, labels), builder.constant(0, x.dtype()));
      e.out(1) = logsumexp;
    },
    .grad = [](GradCall& g) -> void {
      require(!g.has_dout(1),
              "cross_entropy: the gradient flows from the loss only, but logsumexp is used;",
              " compute it with max, exp, sum and log");
      g.din(0) = g.dout(0).builder().add(kCrossEntropyGrad, {g.in(0), g.in(1), g.out(1), g.dout(0)},
                                         {g.call.integer("ignore_index")});
    },
    .flops = softmax_flops<4>,  // max, sub, exp, add
    .reference = {cross_entropy_reference<float>, cross_entropy_reference<double>},
};

constinit const OpDef kCrossEntropyGrad = {
    .name = "cross_entropy_grad",
    .doc = "Gradient of cross_entropy: (logits, labels, logsumexp, dloss) -> dlogits.",
    .attrs = {{"ignore_index", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes {
      check_labels(c);
      require(c.in(2) == statistic_of_row(c.in(0)) && c.in(3) == c.in(2),
              "cross_entropy_grad: logits are ", c.in(0), ", logsumexp is ", c.in(2), ", dloss is ",
              c.in(3), "; both need one number per row");
      return {c.in(0)};
    },
    // Given logsumexp every element stands alone: the vocabulary may be sharded as it is.
    .factors = [](const OpCall& c) -> Factors {
      return Factors::parse("... v, ..., ..., ... -> ... v", c.ndims());
    },
    .flops = softmax_flops<4>,  // sub, exp, sub, mul
    .reference = {cross_entropy_grad_reference<float>, cross_entropy_grad_reference<double>},
    .in_place = {{{0, 0}}},
    .statistics = 1u << 2 | 1u << 3,
};

Value softmax(Value x, int dim, Where where) {
  const int positive = dim < 0 ? dim + x.ndim() : dim;
  return x.builder().add(kSoftmax, {x}, {std::int64_t{positive}}, where);
}

Value log_softmax(Value x, int dim, Where where) {
  const int positive = dim < 0 ? dim + x.ndim() : dim;
  return x.builder().add(kLogSoftmax, {x}, {std::int64_t{positive}}, where);
}

CrossEntropyResult cross_entropy(Value logits, Value labels, std::int64_t ignore_index,
                                 Where where) {
  const std::vector<Value> out =
      logits.builder().add_all(kCrossEntropy, {logits, labels}, {ignore_index}, where);
  return {out[0], out[1]};
}

}  // namespace tessera
