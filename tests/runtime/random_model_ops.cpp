/// Random products, indexing, norms, attention and random numbers.

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/random_pool.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera::fuzz {

namespace {

using Names = std::vector<std::string>;

void shuffle(Random& random, Names& names) {
  for (std::size_t i = names.size(); i > 1; --i)
    std::swap(names[i - 1],
              names[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
}

/// Names for the dims of a and b (equal names: the same factor), and what the result keeps.
struct Product {
  Names a, b, out;
  std::string rows;  // the rows' name; empty where neither has them
  double summed = 1;
};

/// Pushes the product that the names say; the result's dims come in any order.
void push_product(Pool& p, Product names, const Item& a, const Item& b) {
  std::int64_t elements = 1;
  for (const std::string& name : names.out) {
    const auto in_a = std::find(names.a.begin(), names.a.end(), name);
    elements *= in_a != names.a.end()
                    ? a.shape()[static_cast<int>(in_a - names.a.begin())]
                    : b.shape()[static_cast<int>(std::find(names.b.begin(), names.b.end(), name) -
                                                 names.b.begin())];
  }
  if (elements > p.max_elements || names.out.size() > 6) return;
  if (p.random.chance(0.5)) shuffle(p.random, names.out);
  const bool swap = p.random.chance(0.4);
  const std::string left = join(swap ? names.b : names.a, " "),
                    right = join(swap ? names.a : names.b, " ");
  Item y;
  y.value = einsum(text(left, ", ", right, " -> ", join(names.out, " ")), swap ? b.value : a.value,
                   swap ? a.value : b.value) *
            (1.0 / std::sqrt(names.summed));
  y.size = std::max(1.0, 0.7 * a.size * b.size);
  if (!names.rows.empty()) {
    const auto rows = std::find(names.out.begin(), names.out.end(), names.rows);
    if (rows == names.out.end()) {
      p.mixes_rows = true;
    } else {
      y.rows_dim = static_cast<int>(rows - names.out.begin());
      y.per_row = a.rows_dim >= 0 ? a.per_row : b.per_row;
    }
  }
  p.push(y, {&a, &b});
}

/// A value times a new weight, over some of the value's dims.
void linear_product(Pool& p) {
  const auto x = p.pick([](const Item& i) { return i.is(DType::F32) && i.ndim() > 0; });
  if (!x) return;
  Product names;
  Names weight;
  Shape shape;
  std::vector<std::int64_t> sizes;
  for (int d = 0; d < x->ndim(); ++d) {
    const std::string name(1, static_cast<char>('a' + d));
    names.a.push_back(name);
    if (d == x->rows_dim) names.rows = name;
    const bool last_chance = weight.empty() && d + 1 == x->ndim();
    if (d == x->rows_dim || !(last_chance || p.random.chance(0.35))) {
      names.out.push_back(name);
      continue;
    }
    weight.push_back(name);  // summed over, or kept as a batch dim of both
    sizes.push_back(x->shape()[d]);
    if (p.random.chance(0.2)) {
      names.out.push_back(name);
    } else {
      names.summed *= static_cast<double>(x->shape()[d]);
    }
  }
  const std::int64_t news = p.random.one_of({0, 1, 1, 1, 1, 2});
  for (std::int64_t i = 0; i < news; ++i) {
    weight.push_back(text("n", i));
    sizes.push_back(p.dim_size());
    names.out.push_back(weight.back());
  }
  std::vector<std::size_t> order(weight.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (p.random.chance(0.5)) std::reverse(order.begin(), order.end());
  for (const std::size_t i : order) {
    names.b.push_back(weight[i]);
    shape.push_back(sizes[i]);
  }
  if (shape.numel() > p.max_elements) return;
  push_product(p, names, *x, p.parameter(shape));
}

/// Two values over the dims in which they agree.
void product_of_two(Pool& p) {
  const auto a = p.pick([](const Item& i) { return i.is(DType::F32) && i.ndim() > 0; });
  if (!a) return;
  const auto b = p.pick([&](const Item& i) {
    return i.is(DType::F32) && i.ndim() > 0 && i.ndim() + a->ndim() <= 8 &&
           (a->rows_dim < 0 || i.rows_dim < 0 || a->per_row == i.per_row);
  });
  if (!b) return;
  Product names;
  for (int d = 0; d < a->ndim(); ++d) names.a.push_back(text("a", d));
  for (int d = 0; d < b->ndim(); ++d) names.b.push_back(text("b", d));
  if (a->rows_dim >= 0) names.rows = names.a[static_cast<std::size_t>(a->rows_dim)];
  if (b->rows_dim >= 0) {
    std::string& name = names.b[static_cast<std::size_t>(b->rows_dim)];
    if (names.rows.empty()) names.rows = name;
    name = names.rows;
  }
  Names summed;
  for (int i = 0; i < a->ndim(); ++i) {
    for (int j = 0; j < b->ndim(); ++j) {
      std::string& name = names.b[static_cast<std::size_t>(j)];
      if (name[0] != 'b' || name == names.rows || i == a->rows_dim ||
          a->shape()[i] != b->shape()[j])
        continue;
      name = names.a[static_cast<std::size_t>(i)];
      if (p.random.chance(0.6)) {
        summed.push_back(name);
        names.summed *= static_cast<double>(a->shape()[i]);
      }
      break;
    }
  }
  if (a->rows_dim >= 0 && b->rows_dim >= 0 && p.random.chance(0.03)) summed.push_back(names.rows);
  for (const Names* side : {&names.a, &names.b}) {
    for (const std::string& name : *side) {
      const bool known = std::find(names.out.begin(), names.out.end(), name) != names.out.end() ||
                         std::find(summed.begin(), summed.end(), name) != summed.end();
      if (!known) names.out.push_back(name);
    }
  }
  push_product(p, names, *a, *b);
}

/// matmul as layers call it.
void layer_product(Pool& p) {
  const auto x = p.pick([](const Item& i) {
    return i.is(DType::F32) && i.ndim() >= 2 && i.rows_dim != i.ndim() - 1;
  });
  if (!x) return;
  const std::int64_t k = x->shape().back(), n = p.dim_size();
  const bool transposed = p.random.chance(0.5);
  const Item weight = p.parameter(transposed ? Shape{n, k} : Shape{k, n});
  Item y = *x;
  y.value = matmul(x->value, weight.value, {.trans_b = transposed}) *
            (1.0 / std::sqrt(static_cast<double>(k)));
  if (p.random.chance(0.5)) y.value = y.value + p.parameter({n}).value;
  y.size = x->size;
  y.trained = true;
  p.push(y, {&*x});
}

bool ends_free(const Item& i) {
  return i.is(DType::F32) && i.ndim() > 0 && i.rows_dim != i.ndim() - 1;
}

/// A value without its last dim.
Item row_of(const Item& x) {
  Item y = x;
  y.value = max(x.value, -1);
  return y;
}

void normalise(Pool& p) {
  const auto x = p.pick([](const Item& i) { return ends_free(i) && i.shape().back() > 1; });
  if (!x) return;
  Item y = *x, statistic = *x;
  const Shape d{x->shape().back()};
  const double eps = p.random.chance(0.5) ? 1e-2 : 1e-5;
  y.size = 2;
  y.trained = true;
  statistic.gradient_stops = true;
  if (p.random.chance(0.5)) {
    const Value bias = p.random.chance(0.6) ? p.parameter(d).value : Value();
    const LayerNormResult r = layer_norm(x->value, p.parameter(d).value, bias, eps);
    y.value = r.y;
    statistic.value = r.mean;
  } else {
    const RmsNormResult r = rms_norm(x->value, p.parameter(d).value, eps);
    y.value = r.y;
    statistic.value = r.rstd, statistic.size = 7;
  }
  if (p.random.chance(0.2)) p.push(statistic, {&*x});
  p.push(y, {&*x});
}

void softmaxes(Pool& p) {
  const auto x = p.pick([](const Item& i) { return i.is(DType::F32) && i.ndim() > 0; });
  if (!x) return;
  int d = static_cast<int>(p.random.below(x->ndim()));
  if (p.random.chance(0.5)) d = x->ndim() - 1;
  if (d == x->rows_dim) {
    if (!p.random.chance(0.03)) return;
    p.mixes_rows = true;
  }
  Item y = *x;
  y.value = softmax(x->value, d);
  y.size = 1;
  p.push(y, {&*x});
}

void losses(Pool& p) {
  const auto x = p.pick([](const Item& i) { return ends_free(i) && i.shape().back() > 1; });
  if (!x) return;
  const Item labels = p.ids_like(row_of(*x), x->shape().back());
  const CrossEntropyResult r =
      cross_entropy(x->value, labels.value, p.random.chance(0.3) ? 1 : -100);
  Item y = *x;
  y.value = r.loss;
  y.size = 2;
  if (p.random.chance(0.2)) {
    Item statistic = *x;
    statistic.value = r.logsumexp;
    statistic.gradient_stops = true;
    p.push(statistic, {&*x});
  }
  p.push(y, {&*x});
}

void index(Pool& p) {
  const auto x = p.pick(ends_free);
  if (!x) return;
  Item y = *x;
  const std::int64_t last = x->shape().back();
  switch (p.random.below(5)) {
    case 0: {
      const std::int64_t rows = p.dim_size() + 2;
      const Item ids = p.ids_like(row_of(*x), rows);
      y.value = gather(ids.value, p.parameter({rows, p.dim_size()}).value);
      y.size = 1;
      y.gradient_stops = false;
      p.push(y, {});
      return;
    }
    case 1: y.value = pick(x->value, p.ids_like(row_of(*x), last).value); break;
    case 2: {
      const std::int64_t size = p.dim_size();
      const Item ids = p.ids_like(row_of(*x), size);
      y.value = place(ids.value, max(x->value, -1), size);
      break;
    }
    case 3: {
      y.value = one_hot(p.ids_like(row_of(*x), 5).value, 5, DType::F32);
      y.size = 1;
      y.gradient_stops = false;
      p.push(y, {});
      return;
    }
    default: {
      if (x->rows_dim >= 0 && !p.random.chance(0.15)) return;
      p.mixes_rows = p.mixes_rows || x->rows_dim >= 0;
      const std::int64_t rows = p.dim_size();
      y.value = scatter_add(p.ids_like(row_of(*x), rows).value, x->value, rows);
      y.rows_dim = -1, y.per_row = 1, y.size = 3 * x->size;
      break;
    }
  }
  p.push(y, {&*x});
}

/// A rows-first value as [rows, length, width]; nothing where it does not fit.
std::optional<Item> sequence(Pool& p) {
  const auto x = p.pick([](const Item& i) {
    return i.is(DType::F32) && i.rows_first() && i.ndim() >= 2 && i.shape().numel() <= 500;
  });
  if (!x) return std::nullopt;
  Item y = *x;
  const std::int64_t width = x->shape().back();
  y.value = reshape(x->value, {kRows, x->shape().numel() / kRows / width, width});
  return y;
}

Value heads_of(Pool& p, const Item& x, std::int64_t heads, std::int64_t width) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(x.shape().back()));
  return matmul(x.value, p.parameter({heads * width, x.shape().back()}).value, {.trans_b = true}) *
         scale;
}

void attends(Pool& p) {
  const auto x = sequence(p);
  if (!x || x->shape()[1] > 9) return;
  const std::int64_t b = kRows, s = x->shape()[1], g = p.random.one_of({1, 2}),
                     r = p.random.one_of({1, 1, 2}), e = p.random.one_of({2, 4, 8});
  if (b * s * g * (r + 2) * e > p.max_elements) return;
  Value q, k, v;
  bool stops = x->gradient_stops;
  if (p.random.chance(0.6)) {  // packed, as in models
    const Value split = reshape(heads_of(p, *x, g * (r + 2), e), {b, s, g, r + 2, e});
    q = slice(split, 3, 0, r);
    k = reshape(slice(split, 3, r, 1), {b, s, g, e});
    v = reshape(slice(split, 3, r + 1, 1), {b, s, g, e});
  } else {
    auto y = p.random.chance(0.6) ? sequence(p) : x;
    if (!y || y->shape()[1] > 9) y = x;
    const std::int64_t t = y->shape()[1];
    q = reshape(heads_of(p, *x, g * r, e), {b, s, g, r, e});
    k = reshape(heads_of(p, *y, g, e), {b, t, g, e});
    v = reshape(heads_of(p, *y, g, e), {b, t, g, e});
    stops = stops || y->gradient_stops;
  }
  if (p.random.chance(0.4) && k.shape()[1] == s) {
    const Value positions = p.random.chance(0.5) && p.window == 0
                                ? p.batch_ids({b, s}, 20).value
                                : iota(p.builder, {b, s}, 1, DType::I32);
    q = rope(q, positions);
    k = rope(k, positions);
  }
  AttentionOptions options;
  options.causal = p.random.chance(0.6);
  if (p.random.chance(0.3)) options.window = p.random.one_of({1, 2, 3, 5});
  if (p.random.chance(0.2)) options.cap = p.random.between(0.5, 4);
  if (p.random.chance(0.2))
    options.slopes = cast(iota(p.builder, {g, r}, 1, DType::I32), DType::F32) * 0.1;
  const std::string name = p.fresh_name("attention_dropout");
  options.name = name;
  if (p.random.chance(0.3)) options.dropout = 0.3;
  Value mask;
  if (p.random.chance(0.3) && p.window == 0) {
    const std::int64_t t = k.shape()[1];
    mask = p.batch_bits(p.random.chance(0.5) ? Shape{b, t} : Shape{b, s, t}).value;
  }
  Item y = *x;
  y.value = attention(q, k, v, mask, options.dropout > 0 ? p.step : Value(), options).y;
  y.gradient_stops = stops;
  y.size = 2;
  if (p.random.chance(0.7)) y.value = reshape(y.value, {b, s, g * r * e});
  p.push(y, {});
}

void rotates(Pool& p) {
  const auto x = p.pick([](const Item& i) {
    return i.is(DType::F32) && i.rows_first() && i.ndim() >= 3 && i.shape().back() >= 2;
  });
  if (!x) return;
  // Some of the channels turn, with a factor; or all.
  RotaryRates rates = rotary_rates({}, x->shape().back() / 2 * 2, 0);
  if (p.random.chance(0.4)) rates.rates.pop_back(), rates.factor = p.random.between(0.5, 1.5);
  if (rates.rates.empty()) rates.rates = {0.3};
  const Shape places{x->shape()[0], x->shape()[1]};
  const Value positions = p.random.chance(0.5) && p.window == 0
                              ? p.batch_ids(places, 30).value
                              : iota(p.builder, places, 1, DType::I32);
  Item y = *x;
  y.value = rope(x->value, positions, rates, p.random.chance(0.3));
  y.size = std::max(1.0, rates.factor) * x->size;
  p.push(y, {&*x});
}

void randoms(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  Item y = *x;
  const std::string name = p.fresh_name("random");
  if (p.random.chance(0.7)) {
    y.value = dropout(x->value, p.step, p.random.between(0.05, 0.6), name);
    y.size = 2 * x->size;
    p.push(y, {&*x});
    return;
  }
  y.rows_dim = -1, y.per_row = 1, y.size = 2;
  y.value = p.random.chance(0.5) ? random_uniform(p.builder, x->shape(), p.step, name)
                                 : random_normal(p.builder, x->shape(), p.step, name);
  y.gradient_stops = false;
  p.push(y, {});
}

constexpr std::array kFamilies = {
    WeightedFamily{7, linear_product}, WeightedFamily{6, product_of_two},
    WeightedFamily{6, layer_product},  WeightedFamily{4, normalise},
    WeightedFamily{3, softmaxes},      WeightedFamily{2, losses},
    WeightedFamily{5, index},          WeightedFamily{4, attends},
    WeightedFamily{2, rotates},        WeightedFamily{3, randoms},
};

}  // namespace

std::span<const WeightedFamily> model_families() { return kFamilies; }

}  // namespace tessera::fuzz
