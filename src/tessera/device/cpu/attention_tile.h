// Tiles of attention, compiled once per instruction set: included after hwy/highway.h, inside
// foreach_target.
//
// Scores lie transposed, [key][query]: lanes are queries. So the sums and maxima of softmax run
// down the lanes, keys are read in place, one number (or a pair) at a time for a vector of queries,
// and only queries are ever transposed. Where scores are multiplied with rows of channels, lanes
// are those; products of dots have both interleaved by pairs of rows.

#if defined(TESSERA_ATTENTION_TILE) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_ATTENTION_TILE
#undef TESSERA_ATTENTION_TILE
#else
#define TESSERA_ATTENTION_TILE
#endif

#include <algorithm>
#include <cstring>
#include <limits>

#include "tessera/device/cpu/attention_dots.h"
#include "tessera/device/cpu/attention_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {

/// Up to kScoreTile rows of e channels in scratch, turned to [e][kScoreTile]; zero in the columns
/// from `rows` to `cols`.
HWY_INLINE void turn(const float* rows, Size size, Index cols, float* to) {
  for (Index i = 0; size.rows < cols && i < size.e; ++i) {
    std::memset(to + i * kScoreTile + size.rows, 0,
                static_cast<std::size_t>(cols - size.rows) * sizeof(float));
  }
  transpose(rows, padded(size.e), size.rows, size.e, to, kScoreTile);
}

/// The same of rows of bf16 that lie elsewhere, by pairs of channels: [e / 2][kScoreTile], a pair
/// in the place of an f32. `rows` is scratch for them.
HWY_INLINE void turn_pairs(const Operand& from, Size size, Index cols, float* rows, float* to) {
  const Index pairs = size.e / 2;
  const char* const bytes = from.as<const char>();
  for (Index i = 0; i < size.rows; ++i)
    std::memcpy(rows + i * padded(pairs), bytes + i * from.stride * 2,
                static_cast<std::size_t>(size.e * 2));
  turn(rows, {size.rows, pairs}, cols, to);
}

/// Products of rows of bf16, `first` the first of the tile's, with the turned pairs `q`.
HWY_INLINE void multiply_pairs(const Operand& keys, const KeyTile& tile, Index first, Index e,
                               Index cols, const float* q, float scale, float* scores,
                               ListAhead& ahead) {
  const Index width = padded(cols - tile.from);  // whole vectors of 16
  multiply_dots({tile.keys, width, e / 2, keys.as<const std::uint16_t>() + first * keys.stride,
                 keys.stride, 2, q + tile.from, kScoreTile, scores + tile.from, kScoreTile, scale,
                 false, &ahead});
}

/// Pairs of rows of bf16 in scratch, [row / 2][padded e].
HWY_INLINE void read_pairs(const Operand& from, Size size, float* to) {
  pair_rows(from.as<const std::uint16_t>(), from.stride, size.rows, size.e, to, padded(size.e));
}

/// Scores of so many keys, [key][kScoreTile], as products of dots read them: bf16 in their place.
HWY_INLINE const std::uint16_t* rounded(float* scores, Index keys) {
  auto* const out = reinterpret_cast<std::uint16_t*>(scores);
  round_to_bf16(scores, keys * kScoreTile, out);
  return out;
}

/// A tile of keys, or up to four low ones where the causal diagonal runs: up to kScoreTile keys
/// that lie together.
struct KeyTiles {
  KeyTile list[4];
  int count = 0;
  Index keys = 0;

  KeyTiles(const AttentionCall& call, Index t, Index end, Index first) {
    do {
      list[count] = call.key_tile(t + keys, end, first);
      keys += list[count++].keys;
    } while (t + keys < end && keys + kScoreTile / 4 <= kScoreTile);
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

/// What queries of the tiles sum over the keys that they see is added to sums[query]: scores, [key]
/// [kScoreTile], times rows of keys, [key][padded e].
HWY_INLINE void multiply_seen(const KeyTiles& tiles, Index queries, Index e, const float* scores,
                              const float* rows, float* sums, ListAhead& ahead) {
  const Index wide = padded(e);
  for (Index i = 0, seen = 0; i < tiles.count; ++i) {
    const Index begin = tiles.list[i].from, some = tiles.seeing_end(i, queries) - begin;
    seen += tiles.list[i].keys;
    multiply({some, wide, seen, scores + begin, 1, kScoreTile, rows, wide, sums + begin * wide,
              wide, true, &ahead});
  }
}

/// The same of rounded scores, and of rows by pairs. `pairs` is scratch for half of the scores.
HWY_INLINE void multiply_seen_pairs(const KeyTiles& tiles, Index queries, Index e,
                                    const std::uint16_t* scores, float* pairs, const float* rows,
                                    float* sums, ListAhead& ahead) {
  const Index wide = padded(e);
  pair_rows(scores, kScoreTile, tiles.keys, kScoreTile, pairs, kScoreTile);
  for (Index i = 0, seen = 0; i < tiles.count; ++i) {
    const Index begin = tiles.list[i].from, some = tiles.seeing_end(i, queries) - begin;
    seen += tiles.list[i].keys;
    multiply_dots({some, wide, (seen + 1) / 2,
                   reinterpret_cast<const std::uint16_t*>(pairs + begin), 2, 2 * kScoreTile, rows,
                   wide, sums + begin * wide, wide, 1, true, &ahead});
  }
}

/// Scores of a tile under the cap that the call has, if it has one.
HWY_INLINE void cap_scores(const AttentionCall& call, const KeyTile& tile, Index cols,
                           float* scores) {
  const D d;
  for (Index j = 0; call.cap > 0 && j < tile.keys; ++j) {
    float* const row = scores + j * kScoreTile;
    for (Index c = tile.from; c < cols; c += lanes())
      hn::Store(capped(hn::Load(d, row + c), call.cap), d, row + c);
  }
}

/// Adds what scores of queries from local `s` on have by position.
HWY_INLINE void slope_scores(const AttentionCall& call, float slope, Index s, const KeyTile& tile,
                             Index cols, float* scores) {
  const D d;
  const V all = hn::Set(d, slope);
  for (Index j = 0; slope != 0 && j < tile.keys; ++j) {
    float* const row = scores + j * kScoreTile;
    const V ahead = hn::Set(d, static_cast<float>(call.ahead(tile.t + j, s)));
    for (Index c = tile.from; c < cols; c += lanes()) {
      const V query = hn::Iota(d, static_cast<float>(c));
      hn::Store(hn::MulAdd(all, hn::Sub(ahead, query), hn::Load(d, row + c)), d, row + c);
    }
  }
}

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
        if (!row[k]) scores[k * kScoreTile + i] = -std::numeric_limits<float>::infinity();
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
  // Key j is seen by the queries from `first + j` to `last + j`.
  const Index first = call.ahead(tile.t, s) - call.sight.last,
              last = call.ahead(tile.t, s) - call.sight.first;
  const bool early = first + tile.keys - 1 > tile.from, late = last < queries - 1;
  if (!early && !late && !by_key) return;
  const auto hide = [&](float* row, Index begin, Index end, const auto& hidden) HWY_ATTR {
    for (Index c = begin; c < end; c += lanes()) {
      const V query = hn::Iota(d, static_cast<float>(c));
      hn::Store(hn::IfThenElse(hidden(query), none, hn::Load(d, row + c)), d, row + c);
    }
  };
  for (Index j = 0; j < tile.keys; ++j) {
    float* const row = scores + j * kScoreTile;
    const bool masked = by_key && !call.mask_row(b, 0)[tile.t + j];
    const Index before = masked ? cols : std::min(cols, first + j),
                behind = std::max(tile.from, last + j + 1) / lanes() * lanes();
    const V end = hn::Set(d, static_cast<float>(before)),
            begin = hn::Set(d, static_cast<float>(std::min(last + j, cols)));
    hide(row, tile.from, before, [&](V query) HWY_ATTR { return hn::Lt(query, end); });
    if (late && !masked)
      hide(row, behind, cols, [&](V query) HWY_ATTR { return hn::Gt(query, begin); });
  }
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
