// gelu(x) = x * gate(x) and its derivative, compiled once per instruction set: included after
// hwy/highway.h, inside foreach_target. A gate or a slope is made once for a loop. At infinity a
// slope is its limit, 0 or 1.

#if defined(TESSERA_VECTOR_GELU) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_GELU
#undef TESSERA_VECTOR_GELU
#else
#define TESSERA_VECTOR_GELU
#endif

#include <type_traits>

#include "tessera/device/cpu/vector_math.h"
#include "tessera/device/cpu/vector_pieces.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

using GeluTables = std::conditional_t<HWY_TARGET <= HWY_AVX3, SixteenPieces, EightPieces>;

/// One of the functions of gelu_*_pieces(). With AVX-512 their tables stay in registers.
template <class D, const GeluPieces<GeluTables>& (*kForm)(),
          GeluTables GeluPieces<GeluTables>::*kFunction, class V = hn::VFromD<D>>
class InPieces {
  using P = GeluTables;
  static_assert(hn::MaxLanes(D()) == P::kParts);  // of a table, which is one vector

 public:
  HWY_INLINE InPieces() {
    const P& of = kForm().*kFunction;
    width_ = of.width;
#pragma GCC unroll 16
    for (int i = 0; i <= P::kDegree; ++i) tables_[i] = hn::Load(D(), of.coefficient[i]);
  }

  HWY_INLINE V operator()(D d, V x) const {
    constexpr int kLast = P::kParts - 1;
    const hn::RebindToSigned<D> di;
    const V t = at_most(d, kLast * width_, hn::Abs(x)),
            round = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
    // The last bits of the sum are the number of the part.
    const V sum = hn::MulAdd(t, hn::Set(d, 1 / width_), round);
    const V r = hn::NegMulAdd(hn::Sub(sum, round), hn::Set(d, width_), t);
    const auto part = hn::IndicesFromVec(d, hn::And(hn::BitCast(di, sum), hn::Set(di, kLast)));
    V left = hn::TableLookupLanes(tables_[P::kDegree], part);
#pragma GCC unroll 16
    for (int i = P::kDegree - 1; i >= 0; --i)
      left = hn::MulAdd(left, r, hn::TableLookupLanes(tables_[i], part));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0f), left), left);
  }

 private:
  float width_ = 0;
  V tables_[P::kDegree + 1];
};

template <class D>
using GeluErfGate = InPieces<D, gelu_erf_pieces, &GeluPieces<GeluTables>::gate>;
template <class D>
using GeluErfSlope = InPieces<D, gelu_erf_pieces, &GeluPieces<GeluTables>::slope>;
template <class D>
using GeluTanhGate = InPieces<D, gelu_tanh_pieces, &GeluPieces<GeluTables>::gate>;
template <class D>
using GeluTanhSlope = InPieces<D, gelu_tanh_pieces, &GeluPieces<GeluTables>::slope>;

#else

/// The normal distribution function (1 + erf(x / sqrt 2)) / 2; on the left without cancellation,
/// and 0 before -6.
template <class D, class V = hn::VFromD<D>>
struct GeluErfGate {
  HWY_INLINE V operator()(D d, V x) const {
    const V half = hn::Set(d, 0.5f);
    const ErfParts<D, V> erf = erf_parts(d, hn::Mul(x, hn::Set(d, 0.70710678f)));
    const V near = hn::MulAdd(half, erf.near, half);
    const V left = hn::IfThenElseZero(hn::Lt(hn::Abs(x), hn::Set(d, 6.0f)), hn::Mul(half, erf.far));
    const V far = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), left, hn::Sub(hn::Set(d, 1.0f), left));
    return hn::IfThenElse(erf.is_near, near, far);
  }
};
template <class D, class V = hn::VFromD<D>>
struct GeluErfSlope {
  HWY_INLINE V operator()(D d, V x) const {         // cdf + x pdf
    x = at_least(d, -20.0f, at_most(d, 20.0f, x));  // infinity has a slope, too
    const V e = exp_within(d, at_least(d, -87.5f, hn::Mul(hn::Set(d, -0.5f), hn::Mul(x, x))));
    const V pdf = hn::Mul(hn::Set(d, 0.3989422804f), e);  // 1 / sqrt(2 pi)
    return hn::MulAdd(x, pdf, GeluErfGate<D>()(d, x));
  }
};

// (1 + tanh u) / 2 is the sigmoid of 2u; u = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kTwoU1 = 1.5957691216f, kTwoU3 = kTwoU1 * 0.044715f;
template <class D, class V>
HWY_INLINE V twice_u(D d, V x) {
  return hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, kTwoU3), hn::Set(d, kTwoU1)));
}
template <class D, class V = hn::VFromD<D>>
struct GeluTanhGate {
  HWY_INLINE V operator()(D d, V x) const { return sigmoid_of(d, twice_u(d, x)); }
};
template <class D, class V = hn::VFromD<D>>
struct GeluTanhSlope {
  HWY_INLINE V operator()(D d, V x) const {         // s + x s (1 - s) (2u)'
    x = at_least(d, -20.0f, at_most(d, 20.0f, x));  // so that no power of it is infinite
    const SigmoidPair<V> s = sigmoid_pair_of(d, twice_u(d, x));
    const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 3 * kTwoU3), hn::Set(d, kTwoU1));
    return hn::MulAdd(hn::Mul(x, slope), hn::Mul(s.open, s.closed), s.open);
  }
};

#endif

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
