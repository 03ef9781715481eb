#include "tessera/device/cpu/vector_convert.h"

#include "tessera/device/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_convert.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/vector_load.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

template <typename From, typename To>
void convert(const void* from, void* to, std::int64_t n) {
  store_each<false>(D(), n, static_cast<const From*>(from), static_cast<To*>(to),
                    [](hn::VFromD<D> v) HWY_ATTR { return v; });
}

template <typename From, typename To>
void convert_tile(const TileCall& c) {
  convert<From, To>(c.in[0], c.out, c.n);
}

void widen(bool bf16, const void* from, float* to, std::int64_t n) {
  bf16 ? convert<hwy::bfloat16_t, float>(from, to, n) : convert<hwy::float16_t, float>(from, to, n);
}
void narrow(bool bf16, const float* from, void* to, std::int64_t n) {
  bf16 ? convert<float, hwy::bfloat16_t>(from, to, n) : convert<float, hwy::float16_t>(from, to, n);
}

TileFunction find_widen(bool bf16) {
  return bf16 ? convert_tile<hwy::bfloat16_t, float> : convert_tile<hwy::float16_t, float>;
}
TileFunction find_narrow(bool bf16) {
  return bf16 ? convert_tile<float, hwy::bfloat16_t> : convert_tile<float, hwy::float16_t>;
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

HWY_EXPORT(widen);
HWY_EXPORT(narrow);
HWY_EXPORT(find_widen);
HWY_EXPORT(find_narrow);
HWY_EXPORT(accumulate);

void widen(DType dtype, const void* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(widen)(dtype == DType::BF16, from, to, n);
}

void narrow(DType dtype, const float* from, void* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(narrow)(dtype == DType::BF16, from, to, n);
}

TileFunction widen_tile(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_widen)(dtype == DType::BF16);
}
TileFunction narrow_tile(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_narrow)(dtype == DType::BF16);
}

void accumulate(const float* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate)(from, to, n);
}

}  // namespace tessera::cpu
#endif
