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

/// As to_bf16: a NaN stays one, whatever its lower bits.
void narrow_bf16(const float* from, std::uint16_t* to, std::int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::RebindToUnsigned<decltype(f)> d;
  const hn::RebindToSigned<decltype(f)> s;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(f, from + i);
    const auto bits = hn::BitCast(d, x), high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFFu))));
    const auto nan = hn::Or(high, hn::Set(d, 0x40u));
    const auto out = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), nan, rounded);
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(s, out)), half, to + i);
  }
  for (; i < n; ++i) to[i] = to_bf16(from[i]);
}

void widen_f16(const std::uint16_t* from, float* to, std::int64_t n) {
  const hn::ScalableTag<float> f;
  const hn::Rebind<hwy::float16_t, decltype(f)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
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
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(f, from + i)), half,
               reinterpret_cast<hwy::float16_t*>(to + i));
  for (; i < n; ++i) to[i] = to_f16(from[i]);
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

void accumulate(const float* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate)(from, to, n);
}

}  // namespace tessera::cpu
#endif
