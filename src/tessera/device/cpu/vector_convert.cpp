#include "tessera/device/cpu/vector_convert.h"

#include "tessera/gemm/vector_targets.h"

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

void widen_from(DType dtype, const void* from, float* to, std::int64_t n) {
  with_stored(dtype, [&](auto zero) { convert<decltype(zero), float>(from, to, n); });
}
void narrow_to(DType dtype, const float* from, void* to, std::int64_t n) {
  with_stored(dtype, [&](auto zero) { convert<float, decltype(zero)>(from, to, n); });
}

TileFunction find_widen(DType dtype) {
  return with_stored(dtype,
                     [](auto zero) -> TileFunction { return convert_tile<decltype(zero), float>; });
}
TileFunction find_narrow(DType dtype) {
  return with_stored(dtype,
                     [](auto zero) -> TileFunction { return convert_tile<float, decltype(zero)>; });
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

HWY_EXPORT(widen_from);
HWY_EXPORT(narrow_to);
HWY_EXPORT(find_widen);
HWY_EXPORT(find_narrow);
HWY_EXPORT(accumulate);

void widen(DType dtype, const void* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(widen_from)(dtype, from, to, n);
}

void narrow(DType dtype, const float* from, void* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(narrow_to)(dtype, from, to, n);
}

TileFunction widen_tile(DType dtype) { return HWY_DYNAMIC_DISPATCH(find_widen)(dtype); }
TileFunction narrow_tile(DType dtype) { return HWY_DYNAMIC_DISPATCH(find_narrow)(dtype); }

void accumulate(const float* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(accumulate)(from, to, n);
}

}  // namespace tessera::cpu
#endif
