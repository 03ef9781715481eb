// Counter-based random bits, compiled once per instruction set: included after hwy/highway.h,
// inside foreach_target.
//
// A block of base/philox.h is four words; a vector holds a block per 64-bit lane. A round is two
// multiplications, two shifts and four xors, and each round waits for the one before: several
// vectors are mixed together, or one would wait for its multiplications.

#if defined(TESSERA_VECTOR_PHILOX_BLOCKS) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_PHILOX_BLOCKS
#undef TESSERA_VECTOR_PHILOX_BLOCKS
#else
#define TESSERA_VECTOR_PHILOX_BLOCKS
#endif

#include <cstddef>
#include <cstdint>

#include "tessera/base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
/// Makes the words of blocks that follow each other, in order.
class PhiloxBlocks {
 public:
  PhiloxBlocks(std::uint64_t key, std::uint64_t step) : key_(key), step_(step) {}
  static constexpr std::int64_t kMost = 1;  // blocks
  static std::int64_t many() { return 1; }
  static std::int64_t few() { return 1; }

  void many_words(std::uint64_t first, std::uint32_t* out) const { few_words(first, out); }
  void few_words(std::uint64_t first, std::uint32_t* out) const {
    const PhiloxBlock block = philox(key_, first, step_);
    for (std::size_t w = 0; w < 4; ++w) out[w] = block[w];
  }

 private:
  std::uint64_t key_, step_;
};
#else
/// Makes the words of blocks that follow each other, in order.
class PhiloxBlocks {
  using D = hwy::HWY_NAMESPACE::ScalableTag<std::uint64_t>;
  using V = hwy::HWY_NAMESPACE::VFromD<D>;
  static constexpr std::size_t kLanes = hwy::HWY_NAMESPACE::MaxLanes(D());

 public:
  HWY_INLINE PhiloxBlocks(std::uint64_t key, std::uint64_t step) : step_(step) {
    namespace hn = hwy::HWY_NAMESPACE;
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (auto& round : keys_) {
      hn::Store(hn::Set(D(), k0), D(), round[0]);
      hn::Store(hn::Set(D(), k1), D(), round[1]);
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
  }

  static constexpr std::int64_t kMost = 3 * kLanes;  // blocks
  static std::int64_t few() { return static_cast<std::int64_t>(hwy::HWY_NAMESPACE::Lanes(D())); }
  static std::int64_t many() { return 3 * few(); }

  /// The 4 * many() words of the blocks from `first` on.
  HWY_INLINE void many_words(std::uint64_t first, std::uint32_t* out) const {
    const auto next = static_cast<std::uint64_t>(few());
    Blocks x = from(first), y = from(first + next), z = from(first + 2 * next);
    for (const auto& round : keys_) {
      mix(round, x);
      mix(round, y);
      mix(round, z);
    }
    store(x, out);
    store(y, out + 4 * next);
    store(z, out + 8 * next);
  }

  /// The 4 * few() words of the blocks from `first` on.
  HWY_INLINE void few_words(std::uint64_t first, std::uint32_t* out) const {
    Blocks x = from(first);
    for (const auto& round : keys_) mix(round, x);
    store(x, out);
  }

  /// Of kVectors vectors of blocks, each a block per lane; words lie in the low halves of lanes,
  /// the high ones hold garbage. Enough of them that none waits for another: keys are added last.
  template <std::size_t kVectors>
  HWY_INLINE void lane_words(const V (&index)[kVectors], V (&words)[kVectors][4]) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const D d;
    Blocks b[kVectors];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) b[i] = from(index[i]);
#pragma GCC unroll 10
    for (const auto& round : keys_) {
      const V k0 = hn::Load(d, round[0]), k1 = hn::Load(d, round[1]);
#pragma GCC unroll 4
      for (Blocks& x : b) {
        const V p0 = mul_low(x.c0, 0xD2511F53u), p1 = mul_low(x.c2, 0xCD9E8D57u);
        x = {hn::Xor3(hn::ShiftRight<32>(p1), x.c1, k0), p1, hn::Xor3(high(p0), x.c3, k1), p0};
      }
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i)
      words[i][0] = b[i].c0, words[i][1] = b[i].c1, words[i][2] = b[i].c2, words[i][3] = b[i].c3;
  }

 private:
  using D32 = hwy::HWY_NAMESPACE::Repartition<std::uint32_t, D>;
  /// Words lie in the low halves of lanes; high halves are garbage.
  struct Blocks {
    V c0, c1, c2, c3;
  };

  HWY_INLINE Blocks from(std::uint64_t first) const {
    return from(hwy::HWY_NAMESPACE::Iota(D(), first));
  }
  HWY_INLINE Blocks from(V index) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const D d;
    return {index, hn::ShiftRight<32>(index), hn::Set(d, step_ & 0xFFFFFFFFu),
            hn::Set(d, step_ >> 32)};
  }

  /// 32 x 32 -> 64 bits of the low halves.
  static HWY_INLINE V mul_low(V a, std::uint32_t b) {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::MulEven(hn::BitCast(D32(), a), hn::BitCast(D32(), hn::Set(D(), b)));
  }

  /// The high half in the place of the low one, whose place nobody reads. Beside shifts, because
  /// the processor has other units for it.
  static HWY_INLINE V high(V a) {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::BitCast(D(), hn::Shuffle2301(hn::BitCast(D32(), a)));
  }

  /// Made before what follows: the compiler would reorder xors, and put one behind a product that
  /// need not wait for it.
  static HWY_INLINE V ready(V v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
    asm("" : "+v"(v.raw));
#endif
    return v;
  }

  static HWY_INLINE void mix(const std::uint64_t (&keys)[2][kLanes], Blocks& b) {
    namespace hn = hwy::HWY_NAMESPACE;
    const D d;
    const V p0 = mul_low(b.c0, 0xD2511F53u), p1 = mul_low(b.c2, 0xCD9E8D57u);
    const V k1 = ready(hn::Xor(b.c1, hn::Load(d, keys[0]))),
            k3 = ready(hn::Xor(b.c3, hn::Load(d, keys[1])));
    b = {hn::Xor(hn::ShiftRight<32>(p1), k1), p1, hn::Xor(high(p0), k3), p0};
  }

  /// Words 0, 1 of each block, or 2, 3, as pairs of 32 bits.
  static HWY_INLINE V pair(V low, V high) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V up = hn::ShiftLeft<32>(high);
    return hn::BitCast(D(), hn::OddEven(hn::BitCast(D32(), up), hn::BitCast(D32(), low)));
  }

  static HWY_INLINE void store(const Blocks& b, std::uint32_t* out) {
    hwy::HWY_NAMESPACE::StoreInterleaved2(pair(b.c0, b.c1), pair(b.c2, b.c3), D(),
                                          reinterpret_cast<std::uint64_t*>(out));
  }

  HWY_ALIGN std::uint64_t keys_[10][2][kLanes];  // both words of every round's key, in all lanes
  std::uint64_t step_;
};
#endif

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
