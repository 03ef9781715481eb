#include "tessera/device/cpu/vector_philox.h"

#include <cmath>

#include "tessera/base/philox.h"
#include "tessera/device/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/vector_philox.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<std::uint64_t>;
using V = hn::VFromD<D>;

#if HWY_TARGET != HWY_SCALAR
/// 32 x 32 -> 64 bits of the low halves; what the high halves hold is ignored.
HWY_INLINE V mul_low(V a, V b) {
  const hn::Repartition<std::uint32_t, D> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
}

/// Ten rounds on one block per lane. Words lie in the low halves; the high halves of what is
/// returned are garbage.
HWY_INLINE void rounds(D d, std::uint64_t key, V& c0, V& c1, V& c2, V& c3) {
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const V p0 = mul_low(c0, m0), p1 = mul_low(c2, m1);
    const V n0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, k0));
    const V n2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, k1));
    c0 = n0, c1 = p1, c2 = n2, c3 = p0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}

/// Words 0, 1 of each block, then 2, 3, as pairs of 32 bits.
HWY_INLINE V pair(D d, V low, V high) {
  return hn::Or(hn::And(low, hn::Set(d, 0xFFFFFFFFu)), hn::ShiftLeft<32>(high));
}
#endif

}  // namespace

void words(std::uint64_t key, std::uint64_t step, std::uint64_t first, std::int64_t blocks,
           std::uint32_t* out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V s0 = hn::Set(d, step & 0xFFFFFFFFu), s1 = hn::Set(d, step >> 32);
  // Two vectors at once: one alone waits for its multiplications.
  for (; i + 2 * lanes <= blocks; i += 2 * lanes) {
    const V a = hn::Iota(d, first + static_cast<std::uint64_t>(i)),
            b = hn::Add(a, hn::Set(d, static_cast<std::uint64_t>(lanes)));
    V a0 = a, a1 = hn::ShiftRight<32>(a), a2 = s0, a3 = s1;
    V b0 = b, b1 = hn::ShiftRight<32>(b), b2 = s0, b3 = s1;
    rounds(d, key, a0, a1, a2, a3);
    rounds(d, key, b0, b1, b2, b3);
    std::uint64_t* to = reinterpret_cast<std::uint64_t*>(out + 4 * i);
    hn::StoreInterleaved2(pair(d, a0, a1), pair(d, a2, a3), d, to);
    hn::StoreInterleaved2(pair(d, b0, b1), pair(d, b2, b3), d, to + 2 * lanes);
  }
#endif
  for (; i < blocks; ++i) {
    const PhiloxBlock block = philox(key, first + static_cast<std::uint64_t>(i), step);
    for (std::size_t w = 0; w < 4; ++w) out[4 * i + static_cast<std::int64_t>(w)] = block[w];
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(words);

void philox_words(std::uint64_t key, std::uint64_t step, std::uint64_t first_block,
                  std::int64_t blocks, std::uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(words)(key, step, first_block, blocks, out);
}

std::int32_t keep_threshold(double p) {
  return static_cast<std::int32_t>(std::ceil(std::ldexp(static_cast<float>(p), 24)));
}

}  // namespace tessera::cpu
#endif
