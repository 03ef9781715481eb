#include <algorithm>
#include <cmath>

#include "tessera/device/cpu/attention_call.h"
#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/attention_forward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/attention_dropout.h"
#include "tessera/device/cpu/attention_tile.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

/// Where things lie in a thread's scratch.
struct Forward {
  float* queries;               // [e][kScoreTile]
  float *sums, *rows;           // [query][padded e]; of keys, then of values [key][padded e], or by
                                // pairs [key / 2][padded e] where products are of dots
  float *scores, *kept;         // [key][kScoreTile]; kept: of dropout, then scores by pairs
  float *top, *total, *shrink;  // per query
  std::uint64_t* random;

  Forward(float* scratch, Index e) {
    const auto take = [&](Index n) { return std::exchange(scratch, scratch + n); };
    queries = take(e * kScoreTile), sums = take(padded(e) * kScoreTile),
    rows = take(padded(e) * kScoreTile);
    scores = take(kScoreTile * kScoreTile), kept = take(kScoreTile * kScoreTile);
    top = take(kScoreTile), total = take(kScoreTile), shrink = take(kScoreTile);
    random = reinterpret_cast<std::uint64_t*>(take(2 * kScoreTile));
  }
};

/// Scores become probabilities under the running maximum, multiplied with `kept` where there is
/// dropout; `shrink` is what earlier sums are multiplied with.
HWY_INLINE void online_softmax(const Forward& f, const KeyTiles& tiles, Index cols, bool dropout) {
  const D d;
  const V none = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (Index c = tiles.list[0].from; c < cols; c += lanes()) {
    const Index keys = tiles.seen_from(c);
    const V before = hn::Load(d, f.top + c);
    V top = before;
    for (Index j = 0; j < keys; ++j) top = hn::Max(top, hn::Load(d, f.scores + j * kScoreTile + c));
    // A query that has seen no key yet: -infinity - 0, not -infinity - -infinity.
    const V base = hn::IfThenElse(hn::Eq(top, none), hn::Zero(d), top);
    V sum = hn::Zero(d);
    for (Index j = 0; j < keys; ++j) {
      float* const at = f.scores + j * kScoreTile + c;
      const V p = exp_of(d, hn::Sub(hn::Load(d, at), base));
      sum = hn::Add(sum, p);
      hn::Store(dropout ? hn::Mul(p, hn::Load(d, f.kept + (at - f.scores))) : p, d, at);
    }
    const V shrink = exp_of(d, hn::Sub(before, base));
    hn::Store(top, d, f.top + c);
    hn::Store(shrink, d, f.shrink + c);
    hn::Store(hn::MulAdd(hn::Load(d, f.total + c), shrink, sum), d, f.total + c);
  }
}

/// y = sums / total; a query without keys gives zeros.
HWY_INLINE void finish(const AttentionCall& call, const Forward& f, Index b, Index g, Index r,
                       Index first, Index queries) {
  float* const logsumexp = call.logsumexp + call.row_at(b, g, r, first);
  const D d;
  for (Index i = 0; i < queries; i += lanes()) {
    const V total = hn::Load(d, f.total + i), one = hn::Set(d, 1.0F);
    hn::Store(hn::Add(hn::Load(d, f.top + i), log_of(d, total)), d, f.top + i);
    hn::Store(hn::IfThenElseZero(hn::Ne(total, hn::Zero(d)), hn::Div(one, total)), d, f.shrink + i);
  }
  std::copy_n(f.top, queries, logsumexp);
  write_scaled(f.sums, {queries, call.E}, f.shrink, 1,
               result(call, call.y, call.query_at(b, first, g, r), call.G * call.R * call.E));
}

/// Scores of keys that lie at `k`.
HWY_INLINE void score_tiles(const AttentionCall& call, const Forward& f, Index b, float slope,
                            const Operand& k, const KeyTiles& tiles, Index first, Index queries,
                            ListAhead& ahead) {
  const Index e = call.E, cols = (queries + lanes() - 1) / lanes() * lanes();
  const bool widened = call.dtype != DType::F32 && !call.dots;
  if (widened) read_rows(k, {tiles.keys, e}, f.rows);
  const float* const rows = widened ? f.rows : k.as<const float>();
  const Index row = widened ? padded(e) : k.stride;
  for (int i = 0; i < tiles.count; ++i) {
    const KeyTile& tile = tiles.list[i];
    const Index at = tile.t - tiles.list[0].t;
    float* const scores = f.scores + at * kScoreTile;
    if (call.dots) {
      multiply_pairs(k, tile, at, e, cols, f.queries, call.scale, scores, ahead);
    } else {
      multiply({tile.keys, cols - tile.from, e, rows + at * row, row, 1, f.queries + tile.from,
                kScoreTile, scores + tile.from, kScoreTile, false, &ahead});
    }
    cap_scores(call, tile, cols, scores);
    slope_scores(call, slope, first, tile, cols, scores);
    hide_unseen(call, b, first, tile, queries, cols, scores);
  }
}

/// What this tile writes, and what the tiles after it read: the queries of the next one, and a part
/// of the keys and values of the next head.
HWY_INLINE ListAhead lines_ahead(const AttentionCall& call, Index b, Index g, Index r,
                                 Index first) {
  const HeadRows &q = call.q, &k = call.k, &v = call.v;
  const Index e = call.E, row = call.G * call.R * e;
  ListAhead out;
  fetch_later(result(call, call.y, call.query_at(b, first, g, r), row),
              {std::min(kScoreTile, call.S - first), e}, out);
  if (first > 0)
    fetch_later(operand(call, q.data, q.at(b, g, r) + (first - kScoreTile) * q.row, q.row),
                {kScoreTile, e}, out);
  const Index head = (b * call.G + g) * call.R + r + 1;
  if (head == call.B * call.G * call.R) return out;
  r = head % call.R, g = head / call.R % call.G, b = head / call.R / call.G;
  const Index last = (call.S - 1) / kScoreTile * kScoreTile;
  if (first == 0)
    fetch_later(operand(call, q.data, q.at(b, g, r) + last * q.row, q.row), {call.S - last, e},
                out);
  const Size some = {std::min(kScoreTile, call.valid_t - first), e};
  fetch_later(operand(call, k.data, k.at(b, g, 0) + first * k.row, k.row), some, out);
  fetch_later(operand(call, v.data, v.at(b, g, 0) + first * v.row, v.row), some, out);
  return out;
}

}  // namespace

void forward(const AttentionCall& call, Index b, Index g, Index r, Index first, float* scratch) {
  const Forward f(scratch, call.E);
  const Index e = call.E, wide = padded(e), queries = std::min(kScoreTile, call.S - first);
  const Index cols = (queries + lanes() - 1) / lanes() * lanes();
  const Operand q = operand(call, call.q.data, call.q.at(b, g, r) + first * call.q.row, call.q.row);
  if (call.dots) {
    turn_pairs(q, {queries, e}, cols, f.sums, f.queries);
  } else {
    read_scaled(q, {queries, e}, call.scale, f.sums);
    turn(f.sums, {queries, e}, cols, f.queries);
  }
  std::fill(f.top, f.top + kScoreTile, -std::numeric_limits<float>::infinity());
  std::fill(f.total, f.total + kScoreTile, 0.0F);
  std::fill(f.sums, f.sums + wide * kScoreTile, 0.0F);
  for (Index i = 0; i < cols && call.drop_below > 0; ++i) {
    f.random[i] =
        static_cast<std::uint64_t>(call.random_index(b, g, r, first + std::min(i, queries - 1)));
  }
  ListAhead ahead = lines_ahead(call, b, g, r, first);
  const Index at_k = call.k.at(b, g, 0), at_v = call.v.at(b, g, 0);
  const auto [begin, end] = call.tiled_keys_of(first, queries);
  for (Index t = begin, keys = 0; t < end; t += keys) {
    const KeyTiles tiles(call, t, end, first);
    keys = tiles.keys;
    if (call.all_hidden(b, first, queries, t, keys)) continue;
    score_tiles(call, f, b, call.slope(g, r),
                operand(call, call.k.data, at_k + t * call.k.row, call.k.row), tiles, first,
                queries, ahead);
    for (int i = 0; call.drop_below > 0 && i < tiles.count; ++i) {
      const KeyTile& tile = tiles.list[i];
      draw_kept(call, f.random, tile, cols, f.kept + (tile.t - t) * kScoreTile);
    }
    online_softmax(f, tiles, cols, call.drop_below > 0);
    const Index from = tiles.list[0].from;
    if (t > begin) {
      float* const sums = f.sums + from * wide;
      scale_rows(sums, wide, {queries - from, wide}, f.shrink + from, 1, sums, wide, wide);
    }
    // Vectors of rows that lie together, whole ones.
    const Operand v = operand(call, call.v.data, at_v + t * call.v.row, call.v.row);
    if (call.dots) {
      read_pairs(v, {keys, e}, f.rows);
      multiply_seen_pairs(tiles, queries, e, rounded(f.scores, keys), f.kept, f.rows, f.sums,
                          ahead);
    } else {
      read_rows(v, {keys, e}, f.rows);
      multiply_seen(tiles, queries, e, f.scores, f.rows, f.sums, ahead);
    }
  }
  finish(call, f, b, g, r, first, queries);
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(forward);

std::int64_t attention_forward_scratch(std::int64_t e) {
  return (e + 2 * ((e + 15) / 16 * 16) + 2 * kScoreTile + 5) * kScoreTile;
}

void attention_forward(const AttentionCall& call, std::int64_t b, std::int64_t g, std::int64_t r,
                       std::int64_t first, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward)(call, b, g, r, first, scratch);
}

}  // namespace tessera::cpu
#endif
