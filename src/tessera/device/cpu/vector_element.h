// Loads and stores of f32 vectors from numbers that lie as f32, bf16 or f16, compiled once per
// instruction set: included after hwy/highway.h, inside foreach_target.

#if defined(TESSERA_VECTOR_ELEMENT) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_ELEMENT
#undef TESSERA_VECTOR_ELEMENT
#else
#define TESSERA_VECTOR_ELEMENT
#endif

#include <cstdint>

#include "tessera/tensor/sixteen_bit.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A 16-bit float in memory.
struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

/// Below AVX2 there are no instructions for f16, and what Highway computes instead neither rounds
/// to nearest nor knows infinity.
constexpr bool kF16 = HWY_TARGET <= HWY_AVX2;

// One number.
HWY_INLINE float get(const float* from) { return *from; }
HWY_INLINE float get(const Bf16* from) { return from_bf16(from->bits); }
HWY_INLINE float get(const F16* from) { return from_f16(from->bits); }
HWY_INLINE void put(float x, float* to) { *to = x; }
HWY_INLINE void put(float x, Bf16* to) { to->bits = to_bf16(x); }
HWY_INLINE void put(float x, F16* to) { to->bits = to_f16(x); }

// A vector of neighbours.
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const Bf16* from) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<std::uint16_t, D> half;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const F16* from) {
  if constexpr (kF16) {
    const hn::Rebind<hwy::float16_t, D> half;
    return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from)));
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(D())];
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = from_f16(from[i].bits);
    return hn::Load(d, lanes);
  }
}

/// As to_bf16, in the upper halves; what is in the lower ones is to be dropped. A NaN stays one,
/// whatever its lower bits.
template <class D>
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<D>> nearest_bf16(D, hn::VFromD<D> x) {
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFFu)));
  const auto nan = hn::Or(bits, hn::Set(d32, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(x)), nan, rounded);
}

// Rounded to nearest, ties to even.
template <class D>
HWY_INLINE void store(D d, hn::VFromD<D> x, float* to) {
  hn::StoreU(x, d, to);
}
template <class D>
HWY_INLINE void store(D d, hn::VFromD<D> x, Bf16* to) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint16_t, D> half;
  const auto high = hn::ShiftRight<16>(nearest_bf16(d, x));
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(di, high)), half, reinterpret_cast<std::uint16_t*>(to));
}
template <class D>
HWY_INLINE void store(D d, hn::VFromD<D> x, F16* to) {
  if constexpr (kF16) {
    const hn::Rebind<hwy::float16_t, D> half;
    hn::StoreU(hn::DemoteTo(half, x), half, reinterpret_cast<hwy::float16_t*>(to));
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(D())];
    hn::Store(x, d, lanes);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) to[i].bits = to_f16(lanes[i]);
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
