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

/// The high half in the place of the low one, whose place nobody reads. Beside shifts, because the
/// processor has other units for it.
HWY_INLINE V high(V a) {
  const hn::Repartition<std::uint32_t, D> d32;
  return hn::BitCast(D(), hn::Shuffle2301(hn::BitCast(d32, a)));
}

constexpr std::size_t kRounds = 10;

/// Both words of the key of every round, in all lanes: made once for many blocks.
struct Keys {
  explicit Keys(D d, std::uint64_t key) {
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (std::size_t round = 0; round < kRounds; ++round) {
      hn::Store(hn::Set(d, k0), d, words[round][0]);
      hn::Store(hn::Set(d, k1), d, words[round][1]);
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
  }
  HWY_ALIGN std::uint64_t words[kRounds][2][hn::MaxLanes(D())];
};

/// Blocks, one per lane. Words lie in the low halves; high halves are garbage.
struct Blocks {
  V c0, c1, c2, c3;
};

HWY_INLINE void mix(D d, const std::uint64_t (&keys)[2][hn::MaxLanes(D())], Blocks& b) {
  const V p0 = mul_low(b.c0, hn::Set(d, 0xD2511F53u)), p1 = mul_low(b.c2, hn::Set(d, 0xCD9E8D57u));
  const V n0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(b.c1, hn::Load(d, keys[0])));
  const V n2 = hn::Xor(high(p0), hn::Xor(b.c3, hn::Load(d, keys[1])));
  b = {n0, p1, n2, p0};
}

/// Words 0, 1 of each block, then 2, 3, as pairs of 32 bits.
HWY_INLINE V pair(D d, V low, V high) {
  return hn::Or(hn::And(low, hn::Set(d, 0xFFFFFFFFu)), hn::ShiftLeft<32>(high));
}

HWY_INLINE Blocks blocks_from(D d, std::uint64_t step, std::uint64_t first) {
  const V index = hn::Iota(d, first);
  return {index, hn::ShiftRight<32>(index), hn::Set(d, step & 0xFFFFFFFFu), hn::Set(d, step >> 32)};
}

HWY_INLINE void store(D d, const Blocks& b, std::uint32_t* out) {
  hn::StoreInterleaved2(pair(d, b.c0, b.c1), pair(d, b.c2, b.c3), d,
                        reinterpret_cast<std::uint64_t*>(out));
}
#endif

}  // namespace

void words(std::uint64_t key, std::uint64_t step, std::uint64_t first, std::int64_t blocks,
           std::uint32_t* out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const Keys keys(d, key);
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Several vectors at once: one alone waits for its multiplications.
  for (; i + 3 * lanes <= blocks; i += 3 * lanes) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i),
                        next = static_cast<std::uint64_t>(lanes);
    Blocks x = blocks_from(d, step, at), y = blocks_from(d, step, at + next),
           z = blocks_from(d, step, at + 2 * next);
    for (const auto& round : keys.words) {
      mix(d, round, x);
      mix(d, round, y);
      mix(d, round, z);
    }
    store(d, x, out + 4 * i);
    store(d, y, out + 4 * (i + lanes));
    store(d, z, out + 4 * (i + 2 * lanes));
  }
  for (; i + lanes <= blocks; i += lanes) {
    Blocks x = blocks_from(d, step, first + static_cast<std::uint64_t>(i));
    for (const auto& round : keys.words) mix(d, round, x);
    store(d, x, out + 4 * i);
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
