#pragma once
/// How elementwise ops are made from a scalar function; for the files of this family only.

#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/reference.h"

namespace tessera::elementwise {

/// Loops of a unary function over the elements, in the operand's dtype.
template <typename F>
void unary_reference(RefCall& c) {
  with_number(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = c.in<T>(0);
    T* y = c.out<T>(0);
    for (std::int64_t i = 0, n = c.out_shape(0).numel(); i < n; ++i)
      y[i] = static_cast<T>(F{}(x[i]));
  });
}

/// Loops of a binary function with broadcasting; the result has type R, or the operands' where R is
/// void.
template <typename F, typename R = void>
void binary_reference(RefCall& c) {
  with_number(c.ins[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Out = std::conditional_t<std::is_void_v<R>, T, R>;
    const T *a = c.in<T>(0), *b = c.in<T>(1);
    Out* y = c.out<Out>(0);
    const Shape &sa = c.in_shape(0), &sb = c.in_shape(1), ta = sa.strides(), tb = sb.strides();
    for_each_index(c.out_shape(0), [&](const Shape& at, std::int64_t i) {
      y[i] =
          static_cast<Out>(F{}(a[broadcast_offset(at, sa, ta)], b[broadcast_offset(at, sb, tb)]));
    });
  });
}

inline TensorTypes same_type(const OpCall& c) { return {c.in(0)}; }

/// The dtype of two operands that are combined. Where 16-bit floats are computed in f32, an f32
/// scalar beside them keeps its digits.
inline DType common_dtype(const OpCall& c, int a, int b) {
  const TensorType &x = c.in(a), &y = c.in(b);
  if (is_16_bit(x.dtype) && y.dtype == DType::F32 && y.ndim() == 0) return x.dtype;
  if (is_16_bit(y.dtype) && x.dtype == DType::F32 && x.ndim() == 0) return y.dtype;
  require(x.dtype == y.dtype, c.op().name, ": operands are ", x, " and ", y,
          "; cast one so that the dtypes agree");
  return x.dtype;
}

inline TensorTypes broadcast_type(const OpCall& c) {
  return {{common_dtype(c, 0, 1), broadcast(c.in(0).shape, c.in(1).shape), {}}};
}

/// As broadcast_type, with a bool result: comparisons.
inline TensorTypes comparison_type(const OpCall& c) {
  return {{DType::Bool, broadcast_type(c)[0].shape, {}}};
}

/// The rule of an op whose result is linear in no operand.
inline Factors not_linear(const OpCall& c) { return elementwise_factors(c); }

inline double one_per_element(const OpCall& c) { return static_cast<double>(c.out(0).numel()); }

template <typename F>
constexpr OpDef unary_op(std::string_view name, std::string_view doc,
                         Factors (*factors)(const OpCall&), void (*grad)(GradCall&),
                         std::uint32_t zero_where = 0) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.infer = same_type;
  op.factors = factors;
  op.grad = grad;
  op.flops = one_per_element;
  op.reference = {unary_reference<F>, unary_reference<F>};
  op.in_place[0] = {0, 0};
  op.zero_where = zero_where;
  op.traits.elementwise = true;
  return op;
}

template <typename F>
constexpr OpDef binary_op(std::string_view name, std::string_view doc,
                          Factors (*factors)(const OpCall&), void (*grad)(GradCall&),
                          std::uint32_t zero_where = 0) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.infer = broadcast_type;
  op.factors = factors;
  op.grad = grad;
  op.flops = one_per_element;
  op.reference = {binary_reference<F>, binary_reference<F>};
  op.in_place = {InPlace{0, 0}, InPlace{0, 1}};  // where the operand has the result's shape
  op.zero_where = zero_where;
  op.traits.elementwise = true;
  return op;
}

}  // namespace tessera::elementwise
