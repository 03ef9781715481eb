#include "tessera/ops/norm.h"

#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

/// Checks x and its weight, whose dims are the last ones of x.
void check_norm(const OpCall& c, const TensorType& x, const TensorType& weight) {
  require(x.ndim() >= 1 && is_float(x.dtype), c.op().name, ": x is ", x,
          "; it needs a floating dtype and a last dim");
  bool fits = weight.dtype == x.dtype && weight.ndim() >= 1 && weight.ndim() <= x.ndim();
  for (int d = 0; fits && d < weight.ndim(); ++d) fits = weight.shape.back(d) == x.shape.back(d);
  require(fits, c.op().name, ": x is ", x, ", weight is ", weight,
          "; the weight needs the dtype of x and the shape of its last dims, those to normalise");
}

/// The type of the gradient of a weight, a sum over all rows. It keeps the digits that it is
/// computed with.
TensorType sum_type(TensorType weight) {
  weight.dtype = computed_in(weight.dtype);
  return weight;
}

/// The type of one statistic per row: the last `dims` dims are 1. It keeps
/// its digits likewise.
TensorType per_row(TensorType x, int dims) {
  x.dtype = computed_in(x.dtype);
  for (int d = x.ndim() - dims; d < x.ndim(); ++d) x.shape[d] = 1;
  return x;
}

/// What the last dims of a norm are called in its rule: those of x and of the weight, those of a
/// statistic, and that ranks exchange statistics where they are split.
struct NormNames {
  std::string d, one, stat;
  explicit NormNames(int dims) {
    for (int i = 0; i < dims; ++i) {
      const std::string name = dims == 1 ? "d" : text("d", i), space = i == 0 ? "" : " ";
      d += space + name;
      one += space + ".";
      stat += space + name + ":stat";
    }
  }
};

/// The mean over the last `dims` dims.
Value mean_of(Value x, int dims) {
  std::vector<std::int64_t> last;
  for (int d = x.ndim() - dims; d < x.ndim(); ++d) last.push_back(d);
  return mean(x, last, KeepDim::Yes);
}

/// Calls f(row) for every row of a value, for each of which there is one statistic.
template <typename F>
void each_row(const Shape& statistic, F&& f) {
  for (std::int64_t row = 0, rows = statistic.numel(); row < rows; ++row) f(row);
}

// ---- layer_norm

/// Two passes: the mean first, then the variance of what is left, so that a large mean costs no
/// digits.
template <typename T>
void layer_norm_reference(RefCall& c) {
  const T eps = static_cast<T>(c.call.number("eps"));
  const T *x = c.in<T>(0), *weight = c.in<T>(1), *bias = c.num_in() > 2 ? c.in<T>(2) : nullptr;
  T *y = c.out<T>(0), *mean = c.out<T>(1), *rstd = c.out<T>(2);
  const std::int64_t n = c.in_shape(1).numel();
  each_row(c.out_shape(1), [&](std::int64_t row) {
    const T* in = x + row * n;
    T total = 0, squares = 0;
    for (std::int64_t i = 0; i < n; ++i) total += in[i];
    const T mu = total / static_cast<T>(n);
    for (std::int64_t i = 0; i < n; ++i) squares += (in[i] - mu) * (in[i] - mu);
    const T r = T(1) / std::sqrt(squares / static_cast<T>(n) + eps);
    for (std::int64_t i = 0; i < n; ++i) {
      y[row * n + i] = (in[i] - mu) * r * weight[i] + (bias != nullptr ? bias[i] : T(0));
    }
    mean[row] = mu, rstd[row] = r;
  });
}

template <typename T>
void layer_norm_grad_reference(RefCall& c) {
  const T *dy = c.in<T>(0), *x = c.in<T>(1), *weight = c.in<T>(2), *mean = c.in<T>(3),
          *rstd = c.in<T>(4);
  T *dx = c.out<T>(0), *dweight = c.out<T>(1), *dbias = c.outs.size() > 2 ? c.out<T>(2) : nullptr;
  const std::int64_t n = c.in_shape(2).numel();
  for (std::int64_t i = 0; i < n; ++i) {
    dweight[i] = 0;
    if (dbias != nullptr) dbias[i] = 0;
  }
  each_row(c.in_shape(3), [&](std::int64_t row) {
    const auto hat = [&](std::int64_t i) { return (x[row * n + i] - mean[row]) * rstd[row]; };
    T sum_g = 0, sum_gh = 0;  // of g = dy * weight, and of g * hat
    for (std::int64_t i = 0; i < n; ++i) {
      const T g = dy[row * n + i] * weight[i];
      sum_g += g, sum_gh += g * hat(i);
      dweight[i] += dy[row * n + i] * hat(i);
      if (dbias != nullptr) dbias[i] += dy[row * n + i];
    }
    const T k = T(1) / static_cast<T>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      dx[row * n + i] = rstd[row] * (dy[row * n + i] * weight[i] - k * sum_g - hat(i) * k * sum_gh);
    }
  });
}

// ---- rms_norm

template <typename T>
void rms_norm_reference(RefCall& c) {
  const T eps = static_cast<T>(c.call.number("eps"));
  const T *x = c.in<T>(0), *weight = c.in<T>(1);
  T *y = c.out<T>(0), *rstd = c.out<T>(1);
  const std::int64_t n = c.in_shape(1).numel();
  each_row(c.out_shape(1), [&](std::int64_t row) {
    T squares = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += x[row * n + i] * x[row * n + i];
    const T r = T(1) / std::sqrt(squares / static_cast<T>(n) + eps);
    for (std::int64_t i = 0; i < n; ++i) y[row * n + i] = x[row * n + i] * r * weight[i];
    rstd[row] = r;
  });
}

template <typename T>
void rms_norm_grad_reference(RefCall& c) {
  const T *dy = c.in<T>(0), *x = c.in<T>(1), *weight = c.in<T>(2), *rstd = c.in<T>(3);
  T *dx = c.out<T>(0), *dweight = c.out<T>(1);
  const std::int64_t n = c.in_shape(2).numel();
  for (std::int64_t i = 0; i < n; ++i) dweight[i] = 0;
  each_row(c.in_shape(3), [&](std::int64_t row) {
    T sum_gh = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T hat = x[row * n + i] * rstd[row];
      sum_gh += dy[row * n + i] * weight[i] * hat;
      dweight[i] += dy[row * n + i] * hat;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const T hat = x[row * n + i] * rstd[row];
      dx[row * n + i] =
          rstd[row] * (dy[row * n + i] * weight[i] - hat * sum_gh / static_cast<T>(n));
    }
  });
}

/// The dims of the weight, which is operand `kWeight`; nothing where they are all.
template <int kWeight>
int rows_of_weight(const OpCall& c) {
  const int dims = c.in(kWeight).ndim();
  return dims < c.in(0).ndim() ? dims : 0;
}

template <int kPerElement>
double norm_flops(const OpCall& c) {
  return static_cast<double>(kPerElement) * static_cast<double>(c.in(0).numel());
}

void only_y(GradCall& g) {
  for (int i = 1; i < g.call.num_out(); ++i) {
    require(!g.has_dout(i), g.call.op().name, ": the gradient flows from y only, but result ", i,
            " (a statistic of its rows) is used; compute that with reductions");
  }
}

}  // namespace

constinit const OpDef kLayerNorm = {
    .name = "layer_norm",
    .doc = "(x - mean) * rstd * weight [+ bias] over the last dims; mean and rstd are results.",
    .attrs = {{"eps", AttrKind::Float}},
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType &x = c.in(0), &weight = c.in(1);
      check_norm(c, x, weight);
      if (c.num_in() > 2)
        require(c.in(2) == weight, "layer_norm: weight is ", weight, ", bias is ", c.in(2),
                "; they must be of one type");
      const TensorType row = per_row(x, weight.ndim());
      return {x, row, row};
    },
    .factors = [](const OpCall& c) -> Factors {
      const auto [d, one, stat] = NormNames(c.in(1).ndim());
      const std::string bias = c.num_in() > 2 ? ", " + d : "";
      return Factors::parse(
          text("... ", d, ", ", d, bias, " -> ... ", d, ", ... ", one, ", ... ", one, " | ", stat),
          c.ndims());
    },
    .expand = [](ExpandCall& e) -> void {
      const int dims = e.in(1).ndim();
      const Value x = e.in(0), mean = mean_of(x, dims), centered = x - mean;
      const Value rstd = rsqrt(mean_of(centered * centered, dims) + e.call.number("eps"));
      const Value y = centered * rstd * e.in(1);
      e.out(0) = e.num_in() > 2 ? y + e.in(2) : y;
      e.out(1) = mean;
      e.out(2) = rstd;
    },
    .grad = [](GradCall& g) -> void {
      only_y(g);
      const bool bias = g.num_in() > 2;
      const std::vector<Value> d = g.dout(0).builder().add_all(
          kLayerNormGrad, {g.dout(0), g.in(0), g.in(1), g.out(1), g.out(2)}, {bias});
      for (int i = 0; i < g.num_in(); ++i) g.din(i) = d[static_cast<std::size_t>(i)];
    },
    .flops = norm_flops<8>,  // add; sub, mul, add; sub, mul, mul, add
    .reference = {layer_norm_reference<float>, layer_norm_reference<double>},
    .row_dims = rows_of_weight<1>,
};

constinit const OpDef kLayerNormGrad = {
    .name = "layer_norm_grad",
    .doc = "Gradient of layer_norm: (dy, x, weight, mean, rstd) -> (dx, dweight[, dbias]).",
    .attrs = {{"bias", AttrKind::Bool}},  // true: there is a bias, and a third result
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType& x = c.in(1);
      check_norm(c, x, c.in(2));
      const TensorType row = per_row(x, c.in(2).ndim());
      require(c.in(0) == x && c.in(3) == row && c.in(4) == row, "layer_norm_grad: dy is ", c.in(0),
              ", x is ", x, ", mean is ", c.in(3), ", rstd is ", c.in(4),
              "; give it the results of layer_norm");
      const TensorType sum = sum_type(c.in(2));
      return c.flag("bias") ? TensorTypes{x, sum, sum} : TensorTypes{x, sum};
    },
    .factors = [](const OpCall& c) -> Factors {
      const auto [d, one, stat] = NormNames(c.in(2).ndim());
      const std::string bias = c.flag("bias") ? ", " + d : "";
      return Factors::parse(text("... ", d, ", ... ", d, ", ", d, ", ... ", one, ", ... ", one,
                                 " -> ... ", d, ", ", d, bias, " | ", stat),
                            c.ndims());
    },
    .expand = [](ExpandCall& e) -> void {
      const Value dy = e.in(0), weight = e.in(2), rstd = e.in(4);
      const Value hat = (e.in(1) - e.in(3)) * rstd, g = dy * weight;
      const int dims = weight.ndim();
      e.out(0) = rstd * (g - mean_of(g, dims) - hat * mean_of(g * hat, dims));
      e.out(1) = unbroadcast(dy * hat, weight.shape());
      if (e.call.flag("bias")) e.out(2) = unbroadcast(dy, weight.shape());
    },
    .flops = norm_flops<14>,  // hat 2, g 1, sums 3, dweight 2, dbias 1, dx 5
    .reference = {layer_norm_grad_reference<float>, layer_norm_grad_reference<double>},
    .row_dims = rows_of_weight<2>,
    .statistics = 1u << 3 | 1u << 4,
};

constinit const OpDef kRmsNorm = {
    .name = "rms_norm",
    .doc =
        "x * rstd * weight over the last dims, rstd = 1 / sqrt(mean(x^2) + eps), which is a "
        "result.",
    .attrs = {{"eps", AttrKind::Float}},
    .infer = [](const OpCall& c) -> TensorTypes {
      check_norm(c, c.in(0), c.in(1));
      return {c.in(0), per_row(c.in(0), c.in(1).ndim())};
    },
    .factors = [](const OpCall& c) -> Factors {
      const auto [d, one, stat] = NormNames(c.in(1).ndim());
      return Factors::parse(text("... ", d, ", ", d, " -> ... ", d, ", ... ", one, " | ", stat),
                            c.ndims());
    },
    .expand = [](ExpandCall& e) -> void {
      const Value x = e.in(0), mean_square = mean_of(x * x, e.in(1).ndim()),
                  rstd = rsqrt(mean_square + e.call.number("eps"));
      e.out(0) = x * rstd * e.in(1);
      e.out(1) = rstd;
    },
    .grad = [](GradCall& g) -> void {
      only_y(g);
      const std::vector<Value> d =
          g.dout(0).builder().add_all(kRmsNormGrad, {g.dout(0), g.in(0), g.in(1), g.out(1)});
      g.din(0) = d[0];
      g.din(1) = d[1];
    },
    .flops = norm_flops<4>,  // mul, add; mul, mul
    .reference = {rms_norm_reference<float>, rms_norm_reference<double>},
    .row_dims = rows_of_weight<1>,
};

constinit const OpDef kRmsNormGrad = {
    .name = "rms_norm_grad",
    .doc = "Gradient of rms_norm: (dy, x, weight, rstd) -> (dx, dweight).",
    .infer = [](const OpCall& c) -> TensorTypes {
      const TensorType& x = c.in(1);
      check_norm(c, x, c.in(2));
      require(c.in(0) == x && c.in(3) == per_row(x, c.in(2).ndim()), "rms_norm_grad: dy is ",
              c.in(0), ", x is ", x, ", rstd is ", c.in(3), "; give it the results of rms_norm");
      return {x, sum_type(c.in(2))};
    },
    .factors = [](const OpCall& c) -> Factors {
      const auto [d, one, stat] = NormNames(c.in(2).ndim());
      return Factors::parse(
          text("... ", d, ", ... ", d, ", ", d, ", ... ", one, " -> ... ", d, ", ", d, " | ", stat),
          c.ndims());
    },
    .expand = [](ExpandCall& e) -> void {
      const Value dy = e.in(0), weight = e.in(2), rstd = e.in(3);
      const Value hat = e.in(1) * rstd, g = dy * weight;
      e.out(0) = rstd * (g - hat * mean_of(g * hat, weight.ndim()));
      e.out(1) = unbroadcast(dy * hat, weight.shape());
    },
    .flops = norm_flops<9>,  // hat 1, g 1, sum 2, dweight 2, dx 3
    .reference = {rms_norm_grad_reference<float>, rms_norm_grad_reference<double>},
    .row_dims = rows_of_weight<2>,
    .statistics = 1u << 3,
};

LayerNormResult layer_norm(Value x, Value weight, Value bias, double eps, Where where) {
  std::vector<Value> ins = {x, weight};
  if (bias.valid()) ins.push_back(bias);
  const std::vector<Value> out = x.builder().add_all(kLayerNorm, ins, {eps}, where);
  return {out[0], out[1], out[2]};
}

RmsNormResult rms_norm(Value x, Value weight, double eps, Where where) {
  const std::vector<Value> out = x.builder().add_all(kRmsNorm, {x, weight}, {eps}, where);
  return {out[0], out[1]};
}

}  // namespace tessera
