// Tiles of attention, compiled once per instruction set: included after hwy/highway.h, inside
// foreach_target.
//
// Scores lie transposed, [key][query]: lanes are queries. So the sums and maxima of softmax run
// down the lanes, keys are read in place, one number at a time for a vector of queries, and only
// queries are ever transposed. Where scores are multiplied with rows of channels, lanes are those.

#if defined(TESSERA_ATTENTION_TILE) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_ATTENTION_TILE
#undef TESSERA_ATTENTION_TILE
#else
#define TESSERA_ATTENTION_TILE
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "tessera/base/philox.h"
#include "tessera/device/cpu/attention_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// Up to kTile rows of e channels in scratch, turned to [e][kTile]; zero in the columns from `rows`
/// to `cols`.
HWY_INLINE void turn(const float* rows, Size size, Index cols, float* to) {
  for (Index i = 0; size.rows < cols && i < size.e; ++i) {
    std::memset(to + i * kTile + size.rows, 0,
                static_cast<std::size_t>(cols - size.rows) * sizeof(float));
  }
  transpose(rows, padded(size.e), size.rows, size.e, to, kTile);
}

/// A tile of keys, or up to four low ones where the causal diagonal runs: up to kTile keys that lie
/// together.
struct KeyTiles {
  KeyTile list[4];
  int count = 0;
  Index keys = 0;

  KeyTiles(const AttentionCall& call, Index t, Index end, Index first) {
    do {
      list[count] = call.key_tile(t + keys, end, first);
      keys += list[count++].keys;
    } while (t + keys < end && keys + kTile / 4 <= kTile);
  }
  /// Keys that some of the queries from `c` on see: the later a tile, the later its first query.
  Index seen_from(Index c) const {
    Index n = 0;
    for (int i = 0; i < count && list[i].from <= c; ++i) n += list[i].keys;
    return n;
  }
  /// Where the queries end, less than `queries`, of which some see keys of tile i and none any of
  /// the next one.
  Index seeing_end(int i, Index queries) const {
    return i + 1 < count ? std::min(list[i + 1].from, queries) : queries;
  }
};

/// What a mask with a row per query hides. Most rows are true, or true up to somewhere: eight keys
/// are looked at together.
HWY_INLINE void hide_masked(const AttentionCall& call, Index b, Index s, const KeyTile& tile,
                            Index queries, float* scores) {
  constexpr std::uint64_t kAllSeen = 0x0101010101010101;
  for (Index i = tile.from; i < queries; ++i) {
    const bool* const row = call.mask_row(b, s + i) + tile.t;
    for (Index j = 0; j < tile.keys; j += 8) {
      std::uint64_t eight = 0;
      const Index end = std::min(j + 8, tile.keys);
      std::memcpy(&eight, row + j, static_cast<std::size_t>(end - j));
      if (eight == kAllSeen) continue;
      for (Index k = j; k < end; ++k) {
        if (!row[k]) scores[k * kTile + i] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

/// Scores that are not seen become -infinity. Queries start at local `s`; `queries` of them in
/// `cols` columns, less those before tile.from.
HWY_INLINE void hide_unseen(const AttentionCall& call, Index b, Index s, const KeyTile& tile,
                            Index queries, Index cols, float* scores) {
  const bool by_query = call.mask_s != 0, by_key = call.mask != nullptr && !by_query;
  if (by_query) hide_masked(call, b, s, tile, queries, scores);
  const D d;
  const V none = hn::Set(d, -std::numeric_limits<float>::infinity());
  const Index ahead = call.ahead(tile.t, s);
  const bool triangle = call.causal && ahead + tile.keys - 1 > tile.from;
  if (!triangle && !by_key) return;
  for (Index j = 0; j < tile.keys; ++j) {
    float* const row = scores + j * kTile;
    const bool hidden = by_key && !call.mask_row(b, 0)[tile.t + j];
    if (!hidden && (!triangle || ahead + j <= tile.from)) continue;
    const V first =
        hn::Set(d, static_cast<float>(hidden ? kTile : ahead + j));  // the first query that sees it
    const Index end = hidden ? cols : std::min(cols, ahead + j);
    for (Index c = tile.from; c < end; c += lanes()) {
      const V query = hn::Iota(d, static_cast<float>(c));
      hn::Store(hn::IfThenElse(hn::Lt(query, first), none, hn::Load(d, row + c)), d, row + c);
    }
  }
}

using D64 = hn::ScalableTag<std::uint64_t>;
using V64 = hn::VFromD<D64>;
using D32 = hn::ScalableTag<std::uint32_t>;
using V32 = hn::VFromD<D32>;

#if HWY_TARGET != HWY_SCALAR
struct Words {
  V32 w[4];
};

HWY_INLINE V64 mul_low(V64 a, V64 b) {
  return hn::MulEven(hn::BitCast(D32(), a), hn::BitCast(D32(), b));
}

/// philox(key, block, step) of one block per 64-bit lane; words lie in the low halves, the high
/// ones hold garbage.
HWY_INLINE void philox_lanes(std::uint64_t key, std::uint64_t step, V64 block, V64 (&c)[4]) {
  const D64 d;
  const V64 m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  c[0] = block, c[1] = hn::ShiftRight<32>(block), c[2] = hn::Set(d, step & 0xFFFFFFFFu),
  c[3] = hn::Set(d, step >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const V64 p0 = mul_low(c[0], m0), p1 = mul_low(c[2], m1);
    c[0] = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c[1]), hn::Set(d, k0));
    c[2] = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c[3]), hn::Set(d, k1));
    c[1] = p1, c[3] = p0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}

/// The words of a block per 32-bit lane; blocks of even and of odd lanes come apart.
HWY_INLINE Words words_of(std::uint64_t key, std::uint64_t step, V64 even, V64 odd) {
  const D64 d;
  V64 e[4], o[4];
  philox_lanes(key, step, even, e);
  philox_lanes(key, step, odd, o);
  const V64 low = hn::Set(d, 0xFFFFFFFFu);
  Words out;
  for (int i = 0; i < 4; ++i) {
    out.w[i] = hn::BitCast(D32(), hn::Or(hn::And(e[i], low), hn::ShiftLeft<32>(o[i])));
  }
  return out;
}

/// Elements phase ... phase + 3 of the eight words of two blocks; the phase, below 4, differs by
/// lane.
HWY_INLINE Words shifted(const Words& a, const Words& b, V32 phase) {
  const D32 d;
  const V32 all[8] = {a.w[0], a.w[1], a.w[2], a.w[3], b.w[0], b.w[1], b.w[2], b.w[3]};
  const auto two = hn::TestBit(phase, hn::Set(d, 2u)), one = hn::TestBit(phase, hn::Set(d, 1u));
  V32 by_two[5];
  for (int i = 0; i < 5; ++i) by_two[i] = hn::IfThenElse(two, all[i + 2], all[i]);
  Words out;
  for (int i = 0; i < 4; ++i) out.w[i] = hn::IfThenElse(one, by_two[i + 1], by_two[i]);
  return out;
}
#endif

/// What dropout multiplies probabilities with: [key][query], 0 or keep_scale. first[i] is the
/// random index of query i and local key 0.
HWY_INLINE void draw_kept(const AttentionCall& call, const std::uint64_t* first,
                          const KeyTile& tile, Index cols, float* kept) {
  const Index keys = tile.keys;
#if HWY_TARGET == HWY_SCALAR
  for (Index j = 0; j < keys; ++j) {
    for (Index c = tile.from; c < cols; ++c) {
      const std::uint32_t bits =
          philox_bits(call.key, first[c] + static_cast<std::uint64_t>(tile.t + j), call.step);
      kept[j * kTile + c] =
          static_cast<std::int32_t>(bits >> 8) >= call.drop_below ? call.keep_scale : 0.0F;
    }
  }
#else
  const D d;
  const D64 d64;
  const D32 d32;
  const hn::RebindToSigned<D32> di;
  const auto last_dropped = hn::Set(di, call.drop_below - 1);
  const V scale = hn::Set(d, call.keep_scale);
  const V64 skip = hn::Set(d64, static_cast<std::uint64_t>(tile.t)),
            one = hn::Set(d64, std::uint64_t{1});
  for (Index c = tile.from; c < cols; c += lanes()) {
    V64 even, odd;
    hn::LoadInterleaved2(d64, first + c, even, odd);
    even = hn::Add(even, skip), odd = hn::Add(odd, skip);
    const V64 low = hn::Set(d64, std::uint64_t{3});
    const V32 phase =
        hn::BitCast(d32, hn::Or(hn::And(even, low), hn::ShiftLeft<32>(hn::And(odd, low))));
    const bool aligned = hn::AllTrue(d32, hn::Eq(phase, hn::Zero(d32)));
    even = hn::ShiftRight<2>(even), odd = hn::ShiftRight<2>(odd);
    Words now = words_of(call.key, call.step, even, odd);
    for (Index j = 0; j < keys; j += 4) {
      Words words = now;
      even = hn::Add(even, one), odd = hn::Add(odd, one);
      if (!aligned || j + 4 < keys) now = words_of(call.key, call.step, even, odd);
      if (!aligned) words = shifted(words, now, phase);
      for (Index i = 0; i < 4 && j + i < keys; ++i) {
        const auto bits = hn::BitCast(di, hn::ShiftRight<8>(words.w[i]));
        const auto keep = hn::RebindMask(d, hn::Gt(bits, last_dropped));
        hn::Store(hn::IfThenElseZero(keep, scale), d, kept + (j + i) * kTile + c);
      }
    }
  }
#endif
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
