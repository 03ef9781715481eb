#include "tessera/device/cpu/vector_convert.h"

#include "tessera/device/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_convert.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_element.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;

/// to[i] = from[i] for numbers that lie as From and To.
template <typename From, typename To>
HWY_INLINE void convert(const From* from, To* to, std::int64_t n) {
  const F f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(f, load(f, from + i), to + i);
  for (; i < n; ++i) put(get(from + i), to + i);
}

void widen_bf16(const std::uint16_t* from, float* to, std::int64_t n) {
  convert(reinterpret_cast<const Bf16*>(from), to, n);
}
void widen_f16(const std::uint16_t* from, float* to, std::int64_t n) {
  convert(reinterpret_cast<const F16*>(from), to, n);
}
void narrow_bf16(const float* from, std::uint16_t* to, std::int64_t n) {
  convert(from, reinterpret_cast<Bf16*>(to), n);
}
void narrow_f16(const float* from, std::uint16_t* to, std::int64_t n) {
  convert(from, reinterpret_cast<F16*>(to), n);
}

void round_bf16(const float* from, float* to, std::int64_t n) {
  const F f;
  const hn::RebindToUnsigned<F> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto upper = hn::And(nearest_bf16(f, hn::LoadU(f, from + i)), hn::Set(d, 0xFFFF0000u));
    hn::StoreU(hn::BitCast(f, upper), f, to + i);
  }
  for (; i < n; ++i) to[i] = from_bf16(to_bf16(from[i]));
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
