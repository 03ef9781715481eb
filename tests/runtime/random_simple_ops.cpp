/// Random elementwise ops, reductions and ops that move elements.

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/random_pool.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera::fuzz {

namespace {

std::vector<std::int64_t> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

void unary(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  const Value v = x->value;
  const double c = p.random.between(-1.5, 1.5);
  Item y = *x;
  y.size = std::min(x->size + 1, 8.0);
  switch (p.random.below(21)) {
    case 0: y.value = -v; break;
    case 1: y.value = exp(x->size > 2 ? tanh(v) : v), y.size = 4; break;
    case 2: y.value = log(abs(v) + 0.5); break;
    case 3: y.value = sqrt(abs(v) + 0.25); break;
    case 4: y.value = rsqrt(abs(v) + 0.25), y.size = 2; break;
    case 5: y.value = tanh(v), y.size = 1; break;
    case 6: y.value = erf(v), y.size = 1; break;
    case 7: y.value = abs(v); break;
    case 8: y.value = sigmoid(v), y.size = 1; break;
    case 9: y.value = relu(v); break;
    case 10: y.value = silu(v); break;
    case 11: y.value = gelu(v, GeluForm::Erf); break;
    case 12: y.value = gelu(v, GeluForm::Tanh); break;
    case 13: y.value = v + c; break;
    case 14: y.value = c - v; break;
    case 15: y.value = v * c; break;
    case 16: y.value = v / (std::abs(c) + 0.5); break;
    case 17: y.value = c / (abs(v) + 0.5); break;
    case 18: y.value = identity(v); break;
    case 19: y.value = power(abs(v) + 0.5, tanh(v)), y.size = x->size + 2; break;
    default: y.value = cos(v), y.size = 1, y.gradient_stops = true; break;
  }
  p.push(y, {&*x});
}

/// A second operand for `x`: another value, x itself, a parameter that repeats over some dims, or
/// something less often met.
Item partner(Pool& p, const Item& x) {
  const double kind = p.random.between(0, 1);
  if (kind < 0.5) {
    const auto y = p.pick([&](const Item& i) { return i.is(DType::F32) && broadcast_rows(x, i); });
    if (y) return *y;
  }
  if (kind > 0.9) return x;
  if (kind > 0.8 && x.rows_first() && p.window == 0) return p.batch_floats(x.shape());
  if (kind > 0.7 && x.ndim() > 0) {  // a part of x itself, which repeats
    const int d = static_cast<int>(p.random.below(x.ndim()));
    if (d != x.rows_dim) {
      Item part = x;
      part.value = slice(x.value, d, p.random.below(x.shape()[d]), 1);
      return part;
    }
  }
  std::vector<std::int64_t> sizes;
  const int dropped = p.random.chance(0.5) ? 0 : static_cast<int>(p.random.below(x.ndim() + 1));
  for (int d = dropped; d < x.ndim(); ++d) {
    const bool rows = d == x.rows_dim && !p.random.chance(0.03);
    sizes.push_back(rows || p.random.chance(0.2) ? 1 : x.shape()[d]);
  }
  return p.parameter(Shape(sizes));
}

void binary(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  Item a = *x, b = partner(p, *x);
  if (p.random.chance(0.5)) std::swap(a, b);
  Item y = *broadcast_rows(a, b);
  switch (p.random.below(7)) {
    case 0: y.value = a.value + b.value, y.size = a.size + b.size; break;
    case 1: y.value = a.value - b.value, y.size = a.size + b.size; break;
    case 2: y.value = a.value * b.value, y.size = a.size * b.size; break;
    case 3: y.value = a.value / (abs(b.value) + 0.5), y.size = 2 * a.size; break;
    case 4: y.value = maximum(a.value, b.value); break;
    case 5: y.value = minimum(a.value, b.value); break;
    default: y.value = power(abs(a.value) + 0.5, tanh(b.value)), y.size = a.size + 2; break;
  }
  p.meets(y, a);
  p.meets(y, b);
  p.push(y, {&a, &b});
}

Value compared(Pool& p, Value a, Value b) {
  switch (p.random.below(4)) {
    case 0: return equal(a, b);
    case 1: return not_equal(a, b);
    case 2: return less(a, b);
    default: return less_equal(a, b);
  }
}

void choose(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  const Item y = partner(p, *x);
  Item bits = *broadcast_rows(*x, y);
  bits.value = compared(p, x->value, y.value);
  if (p.random.chance(0.3)) {
    const auto other =
        p.pick([&](const Item& i) { return i.is(DType::Bool) && broadcast_rows(bits, i); });
    if (other) {
      Item both = *broadcast_rows(bits, *other);
      both.value = p.random.chance(0.5) ? logical_and(bits.value, other->value)
                                        : logical_or(bits.value, other->value);
      bits = both;
    }
  }
  if (p.random.chance(0.2)) bits.value = logical_not(bits.value);
  p.push(bits, {});
  const auto a = p.pick([&](const Item& i) { return i.is(DType::F32) && broadcast_rows(bits, i); });
  if (!a) return;
  const Item one = *broadcast_rows(bits, *a);
  Item shaped = one;
  shaped.value = select(bits.value, a->value, p.builder.constant(p.random.between(-1, 1)));
  if (p.random.chance(0.6)) {
    const auto b =
        p.pick([&](const Item& i) { return i.is(DType::F32) && broadcast_rows(shaped, i); });
    if (b) {
      shaped = *broadcast_rows(shaped, *b);
      shaped.value = p.random.chance(0.5) ? select(bits.value, a->value, b->value)
                                          : select(bits.value, b->value, a->value);
      p.meets(shaped, *a);
      p.meets(shaped, *b);
      p.push(shaped, {&*a, &*b});
      return;
    }
  }
  p.meets(shaped, *a);
  p.push(shaped, {&*a});
}

/// Integers, bools and other dtypes, and back to floats.
void casts(Pool& p) {
  const auto x = p.pick([](const Item&) { return true; });
  if (!x) return;
  Item y = *x;
  if (x->is(DType::F32)) {
    switch (p.random.below(4)) {
      case 0: y.value = cast(tanh(cast(x->value, DType::F64)) * 1.5, DType::F32); break;
      case 1: y.value = cast(x->value * 2.0, DType::I32), y.size = 2 * x->size; break;
      case 2: y.value = is_finite(x->value); break;
      default: y.value = cast(abs(x->value), DType::I64); break;
    }
  } else if (x->is(DType::Bool)) {
    y.value = cast(x->value, DType::F32), y.size = 1;
  } else {
    Value v = x->value;
    if (p.random.chance(0.3)) v = cast(v, x->is(DType::I32) ? DType::I64 : DType::I32);
    if (p.random.chance(0.3)) v = v + 1.0;
    if (p.random.chance(0.3)) v = v * 2.0 - v;
    if (p.random.chance(0.2)) v = maximum(v, v - 3.0);
    if (p.random.chance(0.3) && v.id() != x->value.id()) {
      y.value = v, y.size = x->size + 1;
      p.push(y, {});
    }
    y.value = cast(v, DType::F32) * (1.0 / (x->size + 1)), y.size = 1;
  }
  p.push(y, {&*x});
}

void reduce(Pool& p) {
  const auto x = p.pick([](const Item& i) { return i.is(DType::F32) && i.ndim() > 0; });
  if (!x) return;
  std::vector<std::int64_t> dims;
  std::int64_t reduced = 1;
  Item y = *x;
  const KeepDim keep = p.random.chance(0.5) ? KeepDim::Yes : KeepDim::No;
  for (int d = 0; d < x->ndim(); ++d) {
    const bool rows = d == x->rows_dim;
    if (!p.random.chance(rows ? 0.015 : 0.5)) continue;
    dims.push_back(d);
    reduced *= x->shape()[d];
    if (rows) y.rows_dim = -1, y.per_row = 1, p.mixes_rows = true;
    if (keep == KeepDim::No && d < x->rows_dim && y.rows_dim >= 0) --y.rows_dim;
  }
  if (dims.empty()) return;
  switch (p.random.below(3)) {
    case 0:
      y.value = sum(x->value, dims, keep), y.size = std::sqrt(static_cast<double>(reduced)) * 2;
      break;
    case 1: y.value = mean(x->value, dims, keep); break;
    default: y.value = max(x->value, dims, keep); break;
  }
  p.push(y, {&*x});
}

void broadcasts(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  Item y = *x;
  Shape shape;
  if (p.random.chance(0.5)) {
    shape.push_back(p.random.one_of({1, 2, 3}));
    if (y.rows_dim >= 0) ++y.rows_dim;
  }
  for (const std::int64_t size : x->shape())
    shape.push_back(size == 1 && p.random.chance(0.7) ? p.dim_size() : size);
  if (shape == x->shape() || shape.numel() > p.max_elements) return;
  y.value = broadcast_to(x->value, shape);
  p.push(y, {&*x});
}

/// Splits a dim, joins two, or adds or takes away one of size 1; the rows stay major in their dim.
void reshapes(Pool& p) {
  const auto x = p.pick([](const Item& i) { return !i.is(DType::Bool) && i.ndim() > 0; });
  if (!x) return;
  std::vector<std::int64_t> s = dims_of(x->shape());
  Item y = *x;
  const int d = static_cast<int>(p.random.below(x->ndim()));
  const auto at = s.begin() + d;
  switch (p.random.below(4)) {
    case 0:  // join d and d + 1
      if (d + 1 == x->ndim() || d + 1 == x->rows_dim) return;
      if (d == x->rows_dim) y.per_row *= s[static_cast<std::size_t>(d) + 1];
      *at *= *(at + 1);
      s.erase(at + 1);
      if (x->rows_dim > d) --y.rows_dim;
      break;
    case 1: {  // split d
      const std::int64_t part = p.random.one_of({1, 2, 3, 4, 5, 7, 8});
      const std::int64_t inner = d == x->rows_dim ? x->per_row : *at;
      if (inner % part != 0) return;
      *at /= part;
      s.insert(at + 1, part);
      if (d == x->rows_dim) y.per_row /= part;
      if (x->rows_dim > d) ++y.rows_dim;
      break;
    }
    case 2:
      s.insert(at, 1);
      if (x->rows_dim >= d) ++y.rows_dim;
      break;
    default:
      if (*at != 1) return;
      s.erase(at);
      if (x->rows_dim > d) --y.rows_dim;
      break;
  }
  if (s.size() > 6) return;
  y.value = reshape(x->value, Shape(s));
  p.push(y, {&*x});
}

void transposes(Pool& p) {
  const auto x = p.pick([](const Item& i) { return i.ndim() > 1; });
  if (!x) return;
  std::vector<std::int64_t> order;
  for (int d = 0; d < x->ndim(); ++d) order.push_back(d);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(p.random.below(static_cast<std::int64_t>(i)))]);
  Item y = *x;
  if (x->rows_dim >= 0)
    y.rows_dim =
        static_cast<int>(std::find(order.begin(), order.end(), x->rows_dim) - order.begin());
  y.value = transpose(x->value, order);
  p.push(y, {&*x});
}

/// A dim that is not the rows', or -1.
int free_dim(Pool& p, const Item& x) {
  if (x.ndim() == 0) return -1;
  const int d = static_cast<int>(p.random.below(x.ndim()));
  if (d != x.rows_dim) return d;
  if (!p.random.chance(0.03)) return -1;
  p.mixes_rows = true;
  return d;
}

void slices(Pool& p) {
  const auto x = p.pick([](const Item& i) { return !i.is(DType::Bool); });
  if (!x) return;
  const int d = free_dim(p, *x);
  if (d < 0) return;
  const std::int64_t have = x->shape()[d], size = 1 + p.random.below(have),
                     start = p.random.below(have - size + 1);
  Item y = *x;
  if (d == x->rows_dim) y.rows_dim = -1;
  if (p.random.chance(0.25) && x->is(DType::F32)) {
    Item position;
    position.value =
        p.window == 0 && p.random.chance(0.7)
            ? p.builder.batch(text("position", p.builder.so_far().size()), {DType::I32, {}, {}})
            : p.builder.constant(static_cast<double>(start), DType::I32);
    y.value = dynamic_slice(x->value, d, position.value, size);
  } else if (p.random.chance(0.2)) {
    const std::int64_t step = 1 + p.random.below(3);
    y.value = strided_slice(x->value, d, start, 1 + (have - 1 - start) / step, step);
  } else {
    y.value = slice(x->value, d, start, size);
  }
  p.push(y, {&*x});
  // Another window on the same value: a gradient of several pads.
  if (p.random.chance(0.4) && d != x->rows_dim && start + size < have) {
    Item z = *x;
    z.value = slice(x->value, d, start + size, have - start - size);
    p.push(z, {&*x});
  }
}

void pads(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  const int d = free_dim(p, *x);
  if (d < 0) return;
  const std::int64_t have = x->shape()[d], size = have + p.random.below(4);
  Item y = *x;
  if (d == x->rows_dim) y.rows_dim = -1;
  y.value = pad(x->value, d, p.random.below(size - have + 1), size);
  p.push(y, {&*x});
}

void concats(Pool& p) {
  const auto x = p.pick([](const Item& i) { return i.is(DType::F32) && i.ndim() > 0; });
  if (!x) return;
  const int d = free_dim(p, *x);
  if (d < 0) return;
  std::vector<Value> parts = {x->value};
  Item y = *x;
  if (d == x->rows_dim) y.rows_dim = -1;
  const std::int64_t more = 1 + p.random.below(2);
  for (std::int64_t i = 0; i < more; ++i) {
    const auto other = p.pick([&](const Item& o) {
      if (!o.is(DType::F32) || o.ndim() != x->ndim() || o.rows_dim != x->rows_dim ||
          o.per_row != x->per_row)
        return false;
      for (int k = 0; k < o.ndim(); ++k) {
        if (k != d && o.shape()[k] != x->shape()[k]) return false;
      }
      return true;
    });
    if (!other) continue;
    parts.push_back(other->value);
    y.trained = y.trained || other->trained;
    y.gradient_stops = y.gradient_stops || other->gradient_stops;
    y.size = std::max(y.size, other->size);
  }
  y.value = concat(parts, d);
  p.push(y, {&*x});
}

void sums_of_many(Pool& p) {
  const auto x = p.pick_float();
  if (!x) return;
  std::vector<Value> terms = {x->value};
  Item y = *x;
  for (std::int64_t more = p.random.below(4); more > 0; --more) {
    const auto other = p.pick([&](const Item& o) {
      return o.is(DType::F32) && o.shape() == x->shape() &&
             (o.rows_dim < 0 || (o.rows_dim == x->rows_dim && o.per_row == x->per_row));
    });
    if (!other) continue;
    terms.push_back(other->value);
    p.meets(*x, *other);
    y.trained = y.trained || other->trained;
    y.size += other->size;
    y.gradient_stops = y.gradient_stops || other->gradient_stops;
  }
  y.value = add_n(terms);
  p.push(y, {&*x});
}

void iotas(Pool& p) {
  const auto like = p.pick([](const Item& i) { return i.is(DType::F32) && i.ndim() > 0; });
  if (!like) return;
  Item y;
  const DType dtype = p.random.chance(0.6) ? DType::F32 : DType::I32;
  y.value = iota(p.builder, like->shape(), static_cast<int>(p.random.below(like->ndim())), dtype);
  y.size = 8;
  if (dtype == DType::F32) y.value = y.value * 0.1, y.size = 1;
  p.push(y, {});
}

constexpr std::array kSimpleFamilies = {
    WeightedFamily{10, unary},   WeightedFamily{12, binary},    WeightedFamily{4, choose},
    WeightedFamily{3, casts},    WeightedFamily{5, reduce},     WeightedFamily{3, broadcasts},
    WeightedFamily{6, reshapes}, WeightedFamily{5, transposes}, WeightedFamily{5, slices},
    WeightedFamily{2, pads},     WeightedFamily{3, concats},    WeightedFamily{2, sums_of_many},
    WeightedFamily{1, iotas},
};

}  // namespace

std::span<const WeightedFamily> simple_families() { return kSimpleFamilies; }

}  // namespace tessera::fuzz
