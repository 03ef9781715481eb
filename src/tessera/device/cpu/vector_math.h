// Functions of f32 vectors, compiled once per instruction set: included after hwy/highway.h, inside
// foreach_target.
//
// Polynomials were fitted by least squares with Lawson's weights; errors are in units of the last
// place (ulp) of f32.

#if defined(TESSERA_VECTOR_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_MATH
#undef TESSERA_VECTOR_MATH
#else
#define TESSERA_VECTOR_MATH
#endif

#include <cstdint>
#include <limits>

#include "tessera/device/cpu/vector_load.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// c[0] + x c[1] + x^2 c[2] + ...
template <class D, class V>
HWY_INLINE V polynomial(D, V, V last) {
  return last;
}
template <class D, class V, typename... Rest>
HWY_INLINE V polynomial(D d, V x, float first, float second, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return hn::MulAdd(x, hn::Set(d, second), hn::Set(d, first));
  } else {
    return hn::MulAdd(x, polynomial(d, x, second, rest...), hn::Set(d, first));
  }
}

/// What combine() of tensor/monoid.h says of two numbers: a NaN wins.
template <class V>
HWY_INLINE V larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
}
template <class V>
HWY_INLINE V smaller(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
}

/// The smaller and the larger of x and a limit; NaN stays NaN.
template <class D, class V>
HWY_INLINE V at_most(D d, float limit, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128  // the other operand where one is NaN
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, limit)), hn::Set(d, limit), x);
#else
  return hn::Min(hn::Set(d, limit), x);  // x86 gives the second operand where one is NaN
#endif
}
template <class D, class V>
HWY_INLINE V at_least(D d, float limit, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128  // the other operand where one is NaN
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, limit)), hn::Set(d, limit), x);
#else
  return hn::Max(hn::Set(d, limit), x);
#endif
}

/// e^x within 1 ulp for x in [-87.5, 89] only: 0 below -87 (results under 2.4e-38), infinity above
/// 88.72; NaN stays NaN.
template <class D, class V>
HWY_INLINE V exp_within(D d, V x) {
  const hn::RebindToSigned<D> di;
  // The sum has no digits after the point, and its last bits are those of n + 126.
  const V two = hn::Set(d, 2.0f), round = hn::Set(d, 12582912.0f + 126.0f);  // 1.5 * 2^23
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), round);
  const V n = hn::Sub(rounded, round);
  // ln 2 in two parts: n times the first is exact.
  const V r =
      hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  const V q = polynomial(d, r, 0.5f, 0.16666521f, 0.04166839f, 0.008368711f, 0.0013814608f);
  const V p = hn::MulAdd(hn::Mul(r, r), q, r);
  // 2^n as 2 * 2^(n - 1), so that n = 128 has an exponent of its own; n = -126 becomes 0.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  return hn::Mul(hn::MulAdd(p, two, two), hn::BitCast(d, exponent));
}

/// The same for every x.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  return exp_within(d, at_least(d, -87.5f, at_most(d, 89.0f, x)));
}

/// Natural logarithm within 1 ulp, of zero -infinity, of what is negative NaN; denormals count as
/// their values.
template <class D, class V>
HWY_INLINE V log_of(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const auto small = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const V scaled = hn::IfThenElse(small, hn::Mul(x, hn::Set(d, 33554432.0f)), x);  // 2^25
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
  const auto bits = hn::BitCast(di, scaled);
  const auto shifted = hn::Sub(bits, hn::Set(di, 0x3F3504F3));
  const auto e = hn::ShiftRight<23>(shifted);
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const V exponent = hn::Sub(hn::ConvertTo(d, e), hn::IfThenElseZero(small, hn::Set(d, 25.0f)));
  const V f = hn::Sub(m, one), f2 = hn::Mul(f, f);
  const V p = polynomial(d, f, 0.33333316f, -0.2500081f, 0.20002286f, -0.16624549f, 0.1418118f,
                         -0.13128789f, 0.12881751f, -0.07859646f);
  V tail = hn::MulAdd(exponent, hn::Set(d, -2.12194440e-4f), hn::Mul(hn::Mul(f2, f), p));
  tail = hn::NegMulAdd(hn::Set(d, 0.5f), f2, tail);
  V y = hn::MulAdd(exponent, hn::Set(d, 0.693359375f), hn::Add(f, tail));
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
  const auto valid = hn::Ge(x, hn::Zero(d));  // neither negative nor NaN
  return hn::IfThenElse(valid, y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

/// 1 / (1 + e^-x) within 2 ulp.
template <class D, class V>
HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

/// Hyperbolic tangent within 2 ulp.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V x) {
  const V one = hn::Set(d, 1.0f), size = hn::Abs(x), x2 = hn::Mul(x, x);
  const V p =
      polynomial(d, x2, -0.33333284f, 0.13331491f, -0.053743497f, 0.020650579f, -0.005717037f);
  const V near = hn::MulAdd(hn::Mul(x, x2), p, x);
  const V e = exp_within(d, at_most(d, 89.0f, hn::Add(size, size)));
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), near, hn::CopySignToAbs(far, x));
}

/// erf(x) for |x| < 1 and 1 - erf(|x|) for the others, each only where it holds.
template <class D, class V>
struct ErfParts {
  V near, far;
  decltype(hn::Lt(V(), V())) is_near;
};
template <class D, class V>
HWY_INLINE ErfParts<D, V> erf_parts(D d, V x) {
  const V size = at_most(d, 4.1f, hn::Abs(x)), x2 = hn::Mul(x, x);
  const V p = polynomial(d, x2, 1.1283791f, -0.37612626f, 0.112836f, -0.026854444f, 0.005189535f,
                         -0.0008020841f, 7.889119e-05f);
  // The logarithm of erfc is nearly a parabola.
  const V q = polynomial(d, size, -0.0026716583f, -1.1174387f, -0.65448874f, -0.088634335f,
                         0.014778175f, -0.0011504296f);
  return {hn::Mul(x, p), exp_within(d, q), hn::Lt(size, hn::Set(d, 1.0f))};
}

/// The error function within 2 ulp.
template <class D, class V>
HWY_INLINE V erf_of(D d, V x) {
  const ErfParts<D, V> erf = erf_parts(d, x);
  const V far = hn::CopySignToAbs(hn::Sub(hn::Set(d, 1.0f), erf.far), x);
  return hn::IfThenElse(erf.is_near, erf.near, far);
}

/// The sigmoid s and 1 - s, which has all its digits where s is near 1.
template <class V>
struct SigmoidPair {
  V open, closed;
};
template <class D, class V>
HWY_INLINE SigmoidPair<V> sigmoid_pair_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  // Finite, so that e * open is a number.
  const V e = exp_within(d, at_least(d, -87.5f, at_most(d, 80.0f, hn::Neg(x))));
  const V open = hn::Div(one, hn::Add(one, e));
  return {open, hn::Mul(e, open)};
}

template <class D, class V>
HWY_INLINE float sum_of_lanes(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
