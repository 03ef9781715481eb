#include <cmath>
#include <limits>
#include <type_traits>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/elementwise/from_scalar.h"

namespace tessera {

namespace {

using elementwise::binary_op;
using elementwise::binary_reference;
using elementwise::broadcast_type;
using elementwise::common_dtype;
using elementwise::comparison_type;
using elementwise::not_linear;
using elementwise::one_per_element;

using Equal = decltype([](auto a, auto b) { return a == b; });
using NotEqual = decltype([](auto a, auto b) { return a != b; });
using Less = decltype([](auto a, auto b) { return a < b; });
using LessEqual = decltype([](auto a, auto b) { return a <= b; });
using And = decltype([](bool a, bool b) { return a && b; });
using Or = decltype([](bool a, bool b) { return a || b; });

template <typename F>
constexpr OpDef comparison(std::string_view name, std::string_view doc) {
  OpDef op = binary_op<F>(name, doc, not_linear, nullptr);
  op.infer = comparison_type;
  op.reference = {binary_reference<F, bool>, binary_reference<F, bool>};
  op.in_place = {};  // a bool is narrower than what is compared
  return op;
}

TensorTypes logical_type(const OpCall& c) {
  for (int i = 0; i < c.num_in(); ++i) {
    require(c.in(i).dtype == DType::Bool, c.op().name, ": operand ", i, " is ", c.in(i),
            ", not bool; compare it with something first");
  }
  return c.num_in() == 1 ? TensorTypes{c.in(0)} : broadcast_type(c);
}

/// Loops of a binary function of bools, with broadcasting.
template <typename F>
void logical_reference(RefCall& c) {
  const bool *a = c.in<bool>(0), *b = c.in<bool>(1);
  bool* y = c.out<bool>(0);
  const Shape &sa = c.in_shape(0), &sb = c.in_shape(1), ta = sa.strides(), tb = sb.strides();
  for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
    y[i] = F{}(a[broadcast_offset(at, sa, ta)], b[broadcast_offset(at, sb, tb)]);
  });
}

template <typename F>
constexpr OpDef logical(std::string_view name, std::string_view doc) {
  OpDef op = binary_op<Equal>(name, doc, not_linear, nullptr);
  op.infer = logical_type;
  op.reference = {logical_reference<F>, logical_reference<F>};
  return op;
}

void not_reference(RefCall& c) {
  const bool* x = c.in<bool>(0);
  bool* y = c.out<bool>(0);
  for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) y[i] = !x[i];
}

template <typename T>
void is_finite_reference(RefCall& c) {
  const T* x = c.in<T>(0);
  bool* y = c.out<bool>(0);
  for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) y[i] = std::isfinite(x[i]);
}

void select_reference(RefCall& c) {
  with_element(c.ins[1].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool* condition = c.in<bool>(0);
    const T *a = c.in<T>(1), *b = c.in<T>(2);
    T* y = c.out<T>(0);
    const Shape &sc = c.in_shape(0), &sa = c.in_shape(1), &sb = c.in_shape(2);
    const Shape tc = sc.strides(), ta = sa.strides(), tb = sb.strides();
    for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
      y[i] = condition[broadcast_offset(at, sc, tc)] ? a[broadcast_offset(at, sa, ta)]
                                                     : b[broadcast_offset(at, sb, tb)];
    });
  });
}

/// Floats are truncated; beyond the range of an integer they saturate, and NaN becomes 0.
template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return 0;
    if (static_cast<double>(x) <= static_cast<double>(Limits::min())) return Limits::min();
    if (static_cast<double>(x) >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

void cast_reference(RefCall& c) {
  with_element(c.ins[0].type.dtype, [&](auto from) {
    with_element(c.outs[0].type.dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const From* x = c.in<From>(0);
      To* y = c.out<To>(0);
      for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i) y[i] = convert<To>(x[i]);
    });
  });
}

}  // namespace

constinit const OpDef kEqual = comparison<Equal>("equal", "a == b");
constinit const OpDef kNotEqual = comparison<NotEqual>("not_equal", "a != b");
constinit const OpDef kLess = comparison<Less>("less", "a < b");
constinit const OpDef kLessEqual = comparison<LessEqual>("less_equal", "a <= b");
constinit const OpDef kLogicalAnd = logical<And>("logical_and", "a and b");
constinit const OpDef kLogicalOr = logical<Or>("logical_or", "a or b");

constinit const OpDef kLogicalNot = {
    .name = "logical_not",
    .doc = "not x",
    .infer = logical_type,
    .factors = not_linear,
    .flops = one_per_element,
    .reference = {not_reference, not_reference},
    .in_place = {InPlace{0, 0}},
    .traits = {.elementwise = true},
};

constinit const OpDef kIsFinite = {
    .name = "is_finite",
    .doc = "true where x is neither infinite nor NaN",
    .infer = [](const OpCall& c) -> TensorTypes {
      require(is_float(c.in(0).dtype), "is_finite: x is ", c.in(0),
              "; only floats can be infinite");
      return {{DType::Bool, c.in(0).shape, {}}};
    },
    .factors = not_linear,
    .flops = one_per_element,
    .reference = {is_finite_reference<float>, is_finite_reference<double>},
    .traits = {.elementwise = true},
};

constinit const OpDef kSelect = {
    .name = "select",
    .doc = "a where the condition holds, else b",
    .infer = [](const OpCall& c) -> TensorTypes {
      require(c.in(0).dtype == DType::Bool, "select: the condition is ", c.in(0),
              "; it needs a bool");
      return {{common_dtype(c, 1, 2),
               broadcast(c.in(0).shape, broadcast(c.in(1).shape, c.in(2).shape)),
               {}}};
    },
    .factors = [](const OpCall& c) -> Factors {
      return elementwise_factors(c, Linear::Joint, {1, 2});
    },
    .grad = [](GradCall& g) -> void {
      const Value zero = g.dout(0).builder().constant(0, g.dout(0).dtype());
      if (g.wants(1)) g.din(1) = unbroadcast(select(g.in(0), g.dout(0), zero), g.in(1).shape());
      if (g.wants(2)) g.din(2) = unbroadcast(select(g.in(0), zero, g.dout(0)), g.in(2).shape());
    },
    .flops = one_per_element,
    .reference = {select_reference, select_reference},
    .in_place = {InPlace{0, 1}, InPlace{0, 2}},  // where the operand has the result's shape
    .traits = {.elementwise = true},
};

constinit const OpDef kCast = {
    .name = "cast",
    .doc = "the same numbers in another dtype; floats are truncated to integers, NaN becomes 0",
    .attrs = {{"dtype", AttrKind::DType}},
    .infer = [](const OpCall& c) -> TensorTypes {
      return {{c.dtype("dtype"), c.in(0).shape, {}}};
    },
    // Truncating to integers is not linear.
    .factors = [](const OpCall& c) -> Factors {
      const bool linear = is_float(c.in(0).dtype) && is_float(c.out(0).dtype);
      return linear ? elementwise_factors(c, Linear::Each, {0}) : elementwise_factors(c);
    },
    .grad = [](GradCall& g) -> void {
      if (is_float(g.in(0).dtype()) && is_float(g.out(0).dtype()))
        g.din(0) = cast(g.dout(0), g.in(0).dtype());
    },
    .flops = one_per_element,
    .reference = {cast_reference, cast_reference},
    .traits = {.elementwise = true},
    .zero_where = 0b1,
};

Value equal(At a, Value b) { return a.builder().add(kEqual, {a, b}, {}, a.where); }
Value not_equal(At a, Value b) { return a.builder().add(kNotEqual, {a, b}, {}, a.where); }
Value less(At a, Value b) { return a.builder().add(kLess, {a, b}, {}, a.where); }
Value less_equal(At a, Value b) { return a.builder().add(kLessEqual, {a, b}, {}, a.where); }
Value logical_and(At a, Value b) { return a.builder().add(kLogicalAnd, {a, b}, {}, a.where); }
Value logical_or(At a, Value b) { return a.builder().add(kLogicalOr, {a, b}, {}, a.where); }
Value logical_not(At a) { return a.builder().add(kLogicalNot, {a}, {}, a.where); }
Value is_finite(At x) { return x.builder().add(kIsFinite, {x}, {}, x.where); }
Value select(Value condition, Value a, Value b) {
  return a.builder().add(kSelect, {condition, a, b});
}
Value cast(Value x, DType dtype) {
  return x.dtype() == dtype ? x : x.builder().add(kCast, {x}, {dtype});
}

}  // namespace tessera
