// Dropout of attention's probabilities, compiled once per instruction set: included after
// hwy/highway.h, inside foreach_target.

#if defined(TESSERA_ATTENTION_DROPOUT) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_ATTENTION_DROPOUT
#undef TESSERA_ATTENTION_DROPOUT
#else
#define TESSERA_ATTENTION_DROPOUT
#endif

#include "tessera/base/philox.h"
#include "tessera/device/cpu/attention_call.h"
#include "tessera/device/cpu/vector_philox_blocks.h"
#include "tessera/gemm/vector_product.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
using D64 = hn::ScalableTag<std::uint64_t>;
using V64 = hn::VFromD<D64>;
using D32 = hn::ScalableTag<std::uint32_t>;
using V32 = hn::VFromD<D32>;

/// Random words of a vector of queries, a row of them per key. Queries lie in the even and the odd
/// half of a pair of vectors.
struct RandomRows {
  /// Blocks of four keys that are drawn together: twice as many vectors are in the registers.
  static constexpr std::size_t kSteps = HWY_TARGET <= HWY_AVX3 ? 2 : 1;
  V64 even, odd;  // the next block of each query

  /// Calls row(j, words) for 4 * kSteps keys from j on.
  template <typename Row>
  HWY_INLINE void draw(const PhiloxBlocks& blocks, Index j, const Row& row) {
    const D64 d;
    V64 index[2 * kSteps], words[2 * kSteps][4];
#pragma GCC unroll 2
    for (std::size_t i = 0; i < kSteps; ++i) {
      index[2 * i] = even, index[2 * i + 1] = odd;
      even = hn::Add(even, hn::Set(d, 1u)), odd = hn::Add(odd, hn::Set(d, 1u));
    }
    blocks.lane_words(index, words);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 4 * kSteps; ++i) {
      const V64 low = words[i / 4 * 2][i % 4], high = words[i / 4 * 2 + 1][i % 4];
      row(j + static_cast<Index>(i),
          hn::OddEven(hn::BitCast(D32(), hn::ShiftLeft<32>(high)), hn::BitCast(D32(), low)));
    }
  }
};

/// Words j ... j + 3 of rows of words become that of phase 0 ... 3, which differs by lane.
HWY_INLINE V32 of_phase(const std::uint32_t* rows, V32 phase) {
  const D32 d;
  const Index n = lanes();
  const auto two = hn::TestBit(phase, hn::Set(d, 2u)), one = hn::TestBit(phase, hn::Set(d, 1u));
  const V32 low = hn::IfThenElse(one, hn::Load(d, rows + n), hn::Load(d, rows));
  const V32 high = hn::IfThenElse(one, hn::Load(d, rows + 3 * n), hn::Load(d, rows + 2 * n));
  return hn::IfThenElse(two, high, low);
}
#endif

/// What dropout multiplies probabilities with: [key][query], 0 or keep_scale. first[i] is the
/// random index of query i and local key 0.
HWY_INLINE void draw_kept(const AttentionCall& call, const std::uint64_t* first,
                          const KeyTile& tile, Index cols, float* kept) {
#if HWY_TARGET == HWY_SCALAR
  for (Index j = 0; j < tile.keys; ++j) {
    for (Index c = tile.from; c < cols; ++c) {
      const std::uint32_t bits =
          philox_bits(call.key, first[c] + static_cast<std::uint64_t>(tile.t + j), call.step);
      kept[j * kScoreTile + c] =
          static_cast<std::int32_t>(bits >> 8) >= call.drop_below ? call.keep_scale : 0.0F;
    }
  }
#else
  const D64 d64;
  const D32 d32;
  const PhiloxBlocks blocks(call.key, call.step);
  const V64 skip = hn::Set(d64, static_cast<std::uint64_t>(tile.t)),
            three = hn::Set(d64, std::uint64_t{3});
  const V32 last_dropped = hn::Set(d32, (static_cast<std::uint32_t>(call.drop_below) << 8) - 1);
  HWY_ALIGN std::uint32_t rows[(kScoreTile + 8) * hn::MaxLanes(D32())];
  for (Index c = tile.from; c < cols; c += lanes()) {
    const auto keep = [&](Index j, V32 words) HWY_ATTR {
      const auto kept_ones = hn::RebindMask(D(), hn::Gt(words, last_dropped));
      hn::Store(hn::IfThenElseZero(kept_ones, hn::Set(D(), call.keep_scale)), D(),
                kept + j * kScoreTile + c);
    };
    V64 even, odd;
    hn::LoadInterleaved2(d64, first + c, even, odd);
    even = hn::Add(even, skip), odd = hn::Add(odd, skip);
    const V32 phase =
        hn::BitCast(d32, hn::Or(hn::And(even, three), hn::ShiftLeft<32>(hn::And(odd, three))));
    RandomRows random{hn::ShiftRight<2>(even), hn::ShiftRight<2>(odd)};
    const Index step = 4 * RandomRows::kSteps;
    if (tile.keys % step == 0 && hn::AllTrue(d32, hn::Eq(phase, hn::Zero(d32)))) {
      for (Index j = 0; j < tile.keys; j += step) random.draw(blocks, j, keep);
      continue;
    }
    const auto store = [&](Index j, V32 words)
                           HWY_ATTR { hn::Store(words, d32, rows + j * lanes()); };
    for (Index j = 0; j < tile.keys + 3; j += step) random.draw(blocks, j, store);
    for (Index j = 0; j < tile.keys; ++j) keep(j, of_phase(rows + j * lanes(), phase));
  }
#endif
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
