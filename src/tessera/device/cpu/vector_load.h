// Vectors of f32 from memory and back, compiled once per instruction set: included after
// hwy/highway.h, inside foreach_target.
//
// Numbers lie in memory as float, hwy::bfloat16_t or hwy::float16_t. 16 bits are widened in the
// register when they are loaded, and rounded there (to nearest, ties to even; NaN stays NaN) when
// they are stored.

#if defined(TESSERA_VECTOR_LOAD) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_LOAD
#undef TESSERA_VECTOR_LOAD
#else
#define TESSERA_VECTOR_LOAD
#endif

#include <cstdint>
#include <type_traits>

#include "tessera/tensor/dtype.h"
#include "tessera/tensor/sixteen_bit.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// f with a zero of the type in which numbers of `dtype` lie; nothing of other dtypes.
template <class F>
HWY_INLINE auto with_stored(DType dtype, const F& f) {
  using Result = decltype(f(float()));
  switch (dtype) {
    case DType::F32: return f(float());
    case DType::BF16: return f(hwy::bfloat16_t());
    case DType::F16: return f(hwy::float16_t());
    default: return Result();
  }
}

// ---- one number

HWY_INLINE float load_one(const float* from) { return *from; }
HWY_INLINE float load_one(const hwy::bfloat16_t* from) { return from_bf16(from->bits); }
HWY_INLINE float load_one(const hwy::float16_t* from) { return from_f16(from->bits); }
HWY_INLINE void store_one(float x, float* to) { *to = x; }
HWY_INLINE void store_one(float x, hwy::bfloat16_t* to) { to->bits = to_bf16(x); }
HWY_INLINE void store_one(float x, hwy::float16_t* to) { to->bits = to_f16(x); }

// ---- whole vectors

template <class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, float* to) {
  hn::StoreU(v, d, to);
}

#if HWY_TARGET <= HWY_AVX2

template <class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const hwy::bfloat16_t* from) {
  const hn::Rebind<std::uint16_t, D> half;
  const hn::RebindToUnsigned<D> bits;
  const auto upper = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, upper)));
}
template <class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const hwy::float16_t* from) {
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, from));
}

/// As to_bf16 in the upper half of each lane; what is in the lower ones is to be dropped.
template <class D>
HWY_INLINE hn::VFromD<hn::Repartition<std::uint16_t, D>> nearest_bf16(D d, hn::VFromD<D> v) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Repartition<std::uint16_t, D> d16;
  const auto bits = hn::BitCast(d32, v);
  // What lies in the middle goes up where the last bit that is kept is odd.
  const auto odd = hn::TestBit(bits, hn::Set(d32, 0x10000u));
  const auto more = hn::IfThenElse(odd, hn::Set(d32, 0x8000u), hn::Set(d32, 0x7FFFu));
  const auto nan = hn::Or(bits, hn::Set(d32, 0x400000u));  // also where only lower bits say so
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
  return hn::BitCast(d16, hn::IfThenElse(is_nan, nan, hn::Add(bits, more)));
}
template <class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, hwy::bfloat16_t* to) {
  const hn::Repartition<std::uint16_t, D> d16;
  const hn::Half<decltype(d16)> half;
  const auto pairs = nearest_bf16(d, v);
  hn::StoreU(hn::LowerHalf(half, hn::ConcatOdd(d16, pairs, pairs)), half,
             reinterpret_cast<std::uint16_t*>(to));
}
template <class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, hwy::float16_t* to) {
  const hn::Rebind<hwy::float16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, v), half, to);
}

#else  // no instructions for f16, and what Highway computes instead neither rounds to nearest nor
       // knows infinity

template <class D, typename T>
HWY_INLINE hn::VFromD<D> load_vector(D d, const T* from) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = load_one(from + i);
  return hn::Load(d, lanes);
}
template <class D, typename T>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, T* to) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) store_one(lanes[i], to + i);
}

#endif

/// Two vectors, the first one at `to`.
template <class D, typename T>
HWY_INLINE void store_two(D d, hn::VFromD<D> a, hn::VFromD<D> b, T* to) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, hwy::bfloat16_t>) {
    const hn::Repartition<std::uint16_t, D> d16;
    const auto both = hn::ConcatOdd(d16, nearest_bf16(d, b), nearest_bf16(d, a));
    return hn::StoreU(both, d16, reinterpret_cast<std::uint16_t*>(to));
  }
#endif
  store_vector(d, a, to);
  store_vector(d, b, to + hn::Lanes(d));
}

// ---- the first elements of a vector, and all of a row

template <class D, typename T>
constexpr bool is_converted() {
  return sizeof(T) == 2 && sizeof(hn::TFromD<D>) == 4;
}

/// Loads the first `n` < Lanes(d) elements; the rest is zero.
template <class D, typename T>
HWY_INLINE hn::VFromD<D> load_first(D d, const T* from, std::size_t n) {
  if constexpr (sizeof(T) == 4 && HWY_TARGET <= HWY_AVX2) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, from);  // no fault beyond n
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i] = from[i];
    if constexpr (is_converted<D, T>())
      return load_vector(d, lanes);
    else
      return hn::Load(d, lanes);
  }
}

/// Stores the first `n` < Lanes(d) elements.
template <class D, class V, typename T>
HWY_INLINE void store_first(D d, V v, T* to, std::size_t n) {
  if constexpr (sizeof(T) == 4 && HWY_TARGET <= HWY_AVX2) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, to);
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    if constexpr (is_converted<D, T>())
      store_vector(d, v, lanes);
    else
      hn::Store(v, d, lanes);
    for (std::size_t i = 0; i < n; ++i) to[i] = lanes[i];
  }
}

/// Stores the vectors that make(i) gives for each place i of `n` elements, but for those that do
/// not fill one; returns how many elements it has stored. `kLong`: to make one takes a chain of
/// many operations.
template <bool kLong, class D, typename T, class Make>
HWY_INLINE std::size_t store_whole(D d, std::size_t n, T* y, const Make& make) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if constexpr (sizeof(T) == 2 && kLong) {
    // Rounding waits for the end of a chain, and would keep the processor from beginning the next
    // ones: it comes later, for some vectors together.
    constexpr std::size_t kVectors = 16;
    HWY_ALIGN float made[kVectors * hn::MaxLanes(D())];
    for (const std::size_t all = kVectors * lanes; i + all <= n; i += all) {
      for (std::size_t j = 0; j < all; j += lanes) hn::Store(make(i + j), d, made + j);
      for (std::size_t j = 0; j < all; j += 2 * lanes)
        store_two(d, hn::Load(d, made + j), hn::Load(d, made + j + lanes), y + i + j);
    }
  } else if constexpr (sizeof(T) == 2) {
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const auto first = make(i), second = make(i + lanes);
      store_two(d, first, second, y + i);
    }
  }
  for (; i + lanes <= n; i += lanes) store_vector(d, make(i), y + i);
  return i;
}

/// y[i] = f(x[i]) for `n` elements, where f knows vectors; y may be x.
template <bool kLong, class D, typename From, typename To, class F>
HWY_INLINE void store_each(D d, std::int64_t n, const From* x, To* y, const F& f) {
  const auto all = static_cast<std::size_t>(n);
  const std::size_t i = store_whole<kLong>(
      d, all, y, [&](std::size_t at) HWY_ATTR { return f(load_vector(d, x + at)); });
  if (i < all) store_first(d, f(load_first(d, x + i, all - i)), y + i, all - i);
}

/// Calls f(load, store) for each vector of the row, the last one in part: load(p) and store(v, p)
/// at its place.
template <class D, class F>
HWY_INLINE void each_vector(D d, std::int64_t n, const F& f) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  const auto load = [&](const auto* p) HWY_ATTR { return load_vector(d, p + i); };
  const auto store = [&](hn::VFromD<D> v, auto* p) HWY_ATTR { store_vector(d, v, p + i); };
  for (; i + lanes <= n; i += lanes) f(load, store);
  if (i == n) return;
  const auto rest = static_cast<std::size_t>(n - i);
  const auto load_rest = [&](const auto* p) HWY_ATTR { return load_first(d, p + i, rest); };
  const auto store_rest = [&](hn::VFromD<D> v, auto* p)
                              HWY_ATTR { store_first(d, v, p + i, rest); };
  f(load_rest, store_rest);
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
