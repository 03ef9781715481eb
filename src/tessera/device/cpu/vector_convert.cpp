#include "tessera/device/cpu/vector_convert.h"

#include "tessera/device/cpu/vector_targets.h"
#include "tessera/tensor/sixteen_bit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_convert.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void widen_bf16(const std::uint16_t* from, float* to, std::int64_t n) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const hn::RebindToFloat<decltype(d)> f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::BitCast(f, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, from + i)))), f,
               to + i);
  for (; i < n; ++i) to[i] = from_bf16(from[i]);
}

using F = hn::ScalableTag<float>;

/// As to_bf16, in the upper halves; what is in the lower ones is to be dropped. A NaN stays one,
/// whatever its lower bits.
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<F>> nearest_bf16(hn::VFromD<F> x) {
  const hn::RebindToUnsigned<F> d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFFu)));
  const auto nan = hn::Or(bits, hn::Set(d, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), nan, rounded);
}

void narrow_bf16(const float* from, std::uint16_t* to, std::int64_t n) {
  const F f;
  const hn::RebindToSigned<F> s;
  const hn::Rebind<std::uint16_t, F> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto high = hn::ShiftRight<16>(nearest_bf16(hn::LoadU(f, from + i)));
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(s, high)), half, to + i);
  }
  for (; i < n; ++i) to[i] = to_bf16(from[i]);
}

void round_bf16(const float* from, float* to, std::int64_t n) {
  const F f;
  const hn::RebindToUnsigned<F> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto upper = hn::And(nearest_bf16(hn::LoadU(f, from + i)), hn::Set(d, 0xFFFF0000u));
    hn::StoreU(hn::BitCast(f, upper), f, to + i);
  }
  for (; i < n; ++i) to[i] = from_bf16(to_bf16(from[i]));
}

/// Below AVX2 there are no instructions for f16, and what Highway computes instead neither rounds
/// to nearest nor knows infinity.
constexpr bool kF16 = HWY_TARGET <= HWY_AVX2;

void widen_f16(const std::uint16_t* from, float* to, std::int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::Rebind<hwy::float16_t, decltype(f)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; kF16 && i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from + i));
    hn::StoreU(hn::PromoteTo(f, x), f, to + i);
  }
  for (; i < n; ++i) to[i] = from_f16(from[i]);
}

void narrow_f16(const float* from, std::uint16_t* to, std::int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::Rebind<hwy::float16_t, decltype(f)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; kF16 && i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(f, from + i)), half,
               reinterpret_cast<hwy::float16_t*>(to + i));
  for (; i < n; ++i) to[i] = to_f16(from[i]);
}

void round_f16(const float* from, float* to, std::int64_t n) {
  const F f;
  const hn::Rebind<hwy::float16_t, F> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; kF16 && i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(f, hn::DemoteTo(half, hn::LoadU(f, from + i))), f, to + i);
  for (; i < n; ++i) to[i] = from_f16(to_f16(from[i]));
}

template <typename From, typename To, void (*kConvert)(const From*, To*, std::int64_t)>
void tile(const TileCall& c) {
  kConvert(static_cast<const From*>(c.in[0]), static_cast<To*>(c.out), c.n);
}

TileFunction find_widen(bool bf16) {
  return bf16 ? tile<std::uint16_t, float, widen_bf16> : tile<std::uint16_t, float, widen_f16>;
}
TileFunction find_narrow(bool bf16) {
  return bf16 ? tile<float, std::uint16_t, narrow_bf16> : tile<float, std::uint16_t, narrow_f16>;
}
TileFunction find_round(bool bf16) {
  return bf16 ? tile<float, float, round_bf16> : tile<float, float, round_f16>;
}

void accumulate(const float* from, float* to, std::int64_t n) {
  const hn::ScalableTag<float> f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(f, to + i), hn::LoadU(f, from + i)), f, to + i);
  for (; i < n; ++i) to[i] += from[i];
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(widen_bf16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(narrow_f16);
HWY_EXPORT(find_widen);
HWY_EXPORT(find_narrow);
HWY_EXPORT(find_round);
HWY_EXPORT(accumulate);

void widen(DType dtype, const void* from, float* to, std::int64_t n) {
  const auto* bits = static_cast<const std::uint16_t*>(from);
  if (dtype == DType::BF16) return HWY_DYNAMIC_DISPATCH(widen_bf16)(bits, to, n);
  HWY_DYNAMIC_DISPATCH(widen_f16)(bits, to, n);
}

void narrow(DType dtype, const float* from, void* to, std::int64_t n) {
  auto* bits = static_cast<std::uint16_t*>(to);
  if (dtype == DType::BF16) return HWY_DYNAMIC_DISPATCH(narrow_bf16)(from, bits, n);
  HWY_DYNAMIC_DISPATCH(narrow_f16)(from, bits, n);
}

TileFunction widen_tile(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_widen)(dtype == DType::BF16);
}
TileFunction narrow_tile(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_narrow)(dtype == DType::BF16);
}
TileFunction round_tile(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_round)(dtype == DType::BF16);
}

void accumulate(const float* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate)(from, to, n);
}

}  // namespace tessera::cpu
#endif
