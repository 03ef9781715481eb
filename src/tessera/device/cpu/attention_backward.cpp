#include <algorithm>
#include <cmath>

#include "tessera/device/cpu/attention_call.h"
#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/attention_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/attention_dropout.h"
#include "tessera/device/cpu/attention_tile.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

/// Where things lie in a thread's scratch. Of a head: keys, values and their gradients [t][padded
/// e]. Of a tile of queries: turned [e][kScoreTile], and as rows [query][padded e]. Of up to
/// kScoreTile keys: [key][kScoreTile]. Where products are of dots, keys and rows of queries and of
/// dresults lie by pairs, [row / 2][padded e], and values are not here.
struct Backward {
  float *keys, *values, *dkeys, *dvalues;
  float *queries, *dresults;
  float *query_rows, *dresult_rows, *dquery_rows;
  float *p, *ds, *kept;        // kept: of dropout; then scratch for scores by pairs
  float* capped;               // capped scores, without slopes
  float *row_sum, *logsumexp;  // per query
  std::uint64_t* random;

  Backward(float* scratch, Index e, Index t, bool dots) {
    const auto take = [&](Index n) { return std::exchange(scratch, scratch + (n + 15) / 16 * 16); };
    const Index all = t * padded(e), some = kScoreTile * padded(e);
    keys = take(dots ? (t + 1) / 2 * padded(e) : all), values = take(dots ? 0 : all);
    dkeys = take(all), dvalues = take(all);
    queries = take(e * kScoreTile), dresults = take(e * kScoreTile);
    query_rows = take(some), dresult_rows = take(some), dquery_rows = take(some);
    p = take(kScoreTile * kScoreTile), ds = take(kScoreTile * kScoreTile),
    kept = take(kScoreTile * kScoreTile), capped = take(kScoreTile * kScoreTile);
    row_sum = take(kScoreTile), logsumexp = take(kScoreTile);
    random = reinterpret_cast<std::uint64_t*>(take(2 * kScoreTile));
  }
};

/// sums[i] = x[i] . y[i], rows of e channels; y[i] lies in padded(e).
template <typename T>
HWY_INLINE void dot_rows(const T* x, Index stride, Size size, const float* y, float* sums) {
  const D d;
  const Index n = lanes(), e = size.e;
  for (Index i = 0; i < size.rows; ++i, x += stride, y += padded(e)) {
    V all = hn::Zero(d);
    Index c = 0;
    for (; c + n <= e; c += n) all = hn::MulAdd(load_vector(d, x + c), hn::LoadU(d, y + c), all);
    float sum = hn::GetLane(hn::SumOfLanes(d, all));
    for (; c < e; ++c) sum += load_one(x + c) * y[c];
    sums[i] = sum;
  }
}

HWY_INLINE void dot_operand(const Operand& x, Size size, const float* y, float* sums) {
  with_stored(x.dtype, [&](auto zero) HWY_ATTR {
    dot_rows(x.as<const decltype(zero)>(), x.stride, size, y, sums);
  });
}

/// Scores and the gradients of probabilities become what is summed: kept probabilities, and
/// gradients of scores. `p` and `ds` are the tile's.
HWY_INLINE void score_gradients(const AttentionCall& call, const Backward& f, const KeyTile& tile,
                                Index cols, float* p, float* ds) {
  const D d;
  const bool dropout = call.drop_below > 0;
  const V one_over_cap = hn::Set(d, call.cap > 0 ? 1 / call.cap : 0);
  for (Index c = tile.from; c < cols; c += lanes()) {
    const V base = hn::Load(d, f.logsumexp + c), row_sum = hn::Load(d, f.row_sum + c);
    for (Index j = 0; j < tile.keys; ++j) {
      const Index at = j * kScoreTile + c;
      const V all = exp_of(d, hn::Sub(hn::Load(d, p + at), base));
      V kept = all, dp = hn::Load(d, ds + at);
      if (dropout) {
        const V factor = hn::Load(d, f.kept + at);
        kept = hn::Mul(all, factor), dp = hn::Mul(dp, factor);
      }
      V slope = hn::Mul(all, hn::Sub(dp, row_sum));
      if (call.cap > 0) {  // a score grows by 1 - (score / cap)^2 of what is capped
        const V share = hn::Mul(hn::Load(d, f.capped + at), one_over_cap);
        slope = hn::NegMulAdd(hn::Mul(share, share), slope, slope);
      }
      hn::Store(kept, d, p + at);
      hn::Store(slope, d, ds + at);
    }
  }
}

/// Queries [first, first + queries) of one head and what belongs to them.
HWY_INLINE void load_queries(const AttentionCall& call, const Backward& f, Index b, Index g,
                             Index r, Index first, Index queries, Index cols) {
  const Size size = {queries, call.E};
  const Index row = call.G * call.R * call.E, at = call.query_at(b, first, g, r);
  const float* logsumexp = call.logsumexp_in + call.row_at(b, g, r, first);
  const Operand dy = operand(call, call.dy, at, row),
                q = operand(call, call.q.data, call.q.at(b, g, r) + first * call.q.row, call.q.row);
  read_rows(dy, size, f.dresult_rows);
  dot_operand(operand(call, call.y_in, at, row), size, f.dresult_rows, f.row_sum);
  if (call.dots) {
    turn_pairs(q, size, cols, f.dquery_rows, f.queries);
    turn_pairs(dy, size, cols, f.dquery_rows, f.dresults);
    read_pairs(q, size, f.query_rows);
    read_pairs(dy, size, f.dresult_rows);
  } else {
    read_scaled(q, size, call.scale, f.query_rows);
    turn(f.query_rows, size, cols, f.queries);
    turn(f.dresult_rows, size, cols, f.dresults);
  }
  for (Index i = 0; i < queries && call.dlogsumexp != nullptr; ++i)
    f.row_sum[i] -= call.dlogsumexp[call.row_at(b, g, r, first + i)];
  std::fill(f.row_sum + queries, f.row_sum + cols, 0.0F);
  for (Index i = 0; i < cols; ++i) {
    // A query that sees no key has -infinity, and only hidden scores: any finite number makes their
    // exponentials zero.
    f.logsumexp[i] =
        i < queries && !(std::isinf(logsumexp[i]) && logsumexp[i] < 0) ? logsumexp[i] : 0;
    if (call.drop_below == 0) continue;
    f.random[i] =
        static_cast<std::uint64_t>(call.random_index(b, g, r, first + std::min(i, queries - 1)));
  }
}

/// What this tile writes, and what the tiles after it read: the queries of the next one, and a part
/// of the keys and values of the next head.
HWY_INLINE ListAhead lines_ahead(const AttentionCall& call, Index b, Index g, Index r,
                                 Index first) {
  const HeadRows &q = call.q, &k = call.k, &v = call.v;
  const Index e = call.E, row = call.G * call.R * e, key_row = call.G * e;
  const Size some = {std::min(kScoreTile, call.valid_t - first), e};
  const Index at = ((b * call.T + first) * call.G + g) * e;
  ListAhead out;
  fetch_later(result(call, call.dq, call.query_at(b, first, g, r), row),
              {std::min(kScoreTile, call.S - first), e}, out);
  Index next = first + kScoreTile, head = b * call.G + g;
  if (next >= call.valid_s) next = 0, ++r;
  const bool of_head = r < call.R;
  if (!of_head) r = 0, ++head;
  if (head == call.B * call.G) return out;
  b = head / call.G, g = head % call.G;
  const Size queries = {std::min(kScoreTile, call.valid_s - next), e};
  const Index at_q = call.query_at(b, next, g, r);
  fetch_later(operand(call, q.data, q.at(b, g, r) + next * q.row, q.row), queries, out);
  fetch_later(operand(call, call.dy, at_q, row), queries, out);
  fetch_later(operand(call, call.y_in, at_q, row), queries, out);
  fetch_later(result(call, call.dk, at, key_row), some, out);
  fetch_later(result(call, call.dv, at, key_row), some, out);
  const Index key_head = of_head ? head + 1 : head;
  if (key_head == call.B * call.G) return out;
  b = key_head / call.G, g = key_head % call.G;
  fetch_later(operand(call, k.data, k.at(b, g, 0) + first * k.row, k.row), some, out);
  fetch_later(operand(call, v.data, v.at(b, g, 0) + first * v.row, v.row), some, out);
  return out;
}

/// Scores, and the gradients of probabilities.
HWY_INLINE void score_products(const AttentionCall& call, const Backward& f, Index b, Index g,
                               const KeyTile& tile, Index cols, float* p, float* ds,
                               ListAhead& ahead) {
  const Index e = call.E, wide = padded(e), from = tile.from, at = tile.t * wide;
  if (call.dots) {
    const HeadRows &k = call.k, &v = call.v;
    multiply_pairs(operand(call, k.data, k.at(b, g, 0), k.row), tile, tile.t, e, cols, f.queries,
                   call.scale, p, ahead);
    multiply_pairs(operand(call, v.data, v.at(b, g, 0), v.row), tile, tile.t, e, cols, f.dresults,
                   1, ds, ahead);
    return;
  }
  multiply({tile.keys, cols - from, e, f.keys + at, wide, 1, f.queries + from, kScoreTile, p + from,
            kScoreTile, false, &ahead});
  multiply({tile.keys, cols - from, e, f.values + at, wide, 1, f.dresults + from, kScoreTile,
            ds + from, kScoreTile, false, &ahead});
}

/// What the queries add to the gradients of the tiles' keys and values, and these to those of
/// queries. Depth of the former is queries, not cols: lanes beyond the last query must not enter
/// the sums.
HWY_INLINE void add_gradients(const Backward& f, const KeyTiles& tiles, Index queries, Index e,
                              ListAhead& ahead) {
  const Index wide = padded(e), t = tiles.list[0].t;
  for (int i = 0; i < tiles.count; ++i) {
    const KeyTile& tile = tiles.list[i];
    const Index from = tile.from, seeing = queries - from, at = (tile.t - t) * kScoreTile + from;
    const float *dy = f.dresult_rows + from * wide, *q = f.query_rows + from * wide;
    multiply({tile.keys, wide, seeing, f.p + at, kScoreTile, 1, dy, wide, f.dvalues + tile.t * wide,
              wide, true, &ahead});
    multiply({tile.keys, wide, seeing, f.ds + at, kScoreTile, 1, q, wide, f.dkeys + tile.t * wide,
              wide, true, &ahead});
  }
  multiply_seen(tiles, queries, e, f.ds, f.keys + t * wide, f.dquery_rows, ahead);
}

/// The same, where all rows lie by pairs. A last row without a neighbour has one of zeros, so inf
/// beside it gives NaN.
HWY_INLINE void add_gradients_of_pairs(const Backward& f, const KeyTiles& tiles, Index queries,
                                       Index e, ListAhead& ahead) {
  const Index wide = padded(e), t = tiles.list[0].t;
  const std::uint16_t *const p = rounded(f.p, tiles.keys), *const ds = rounded(f.ds, tiles.keys);
  for (int i = 0; i < tiles.count; ++i) {
    const KeyTile& tile = tiles.list[i];
    const Index from = tile.from, at = (tile.t - t) * kScoreTile + from;
    const auto add = [&](const std::uint16_t* scores, const float* rows, float* sums) HWY_ATTR {
      multiply_dots({tile.keys, wide, (queries - from + 1) / 2, scores + at, kScoreTile, 2,
                     rows + from / 2 * wide, wide, sums + tile.t * wide, wide, 1, true, &ahead});
    };
    add(p, f.dresult_rows, f.dvalues);
    add(ds, f.query_rows, f.dkeys);
  }
  multiply_seen_pairs(tiles, queries, e, ds, f.kept, f.keys + t / 2 * wide, f.dquery_rows, ahead);
}

HWY_INLINE void query_tile(const AttentionCall& call, const Backward& f, Index b, Index g, Index r,
                           Index first) {
  const Index e = call.E, wide = padded(e), queries = std::min(kScoreTile, call.valid_s - first);
  const Index cols = (queries + lanes() - 1) / lanes() * lanes();
  load_queries(call, f, b, g, r, first, queries, cols);
  std::fill(f.dquery_rows, f.dquery_rows + kScoreTile * wide, 0.0F);
  ListAhead ahead = lines_ahead(call, b, g, r, first);
  const auto [begin, end] = call.tiled_keys_of(first, queries);
  for (Index t = begin, all = 0; t < end; t += all) {
    const KeyTiles tiles(call, t, end, first);
    all = tiles.keys;
    if (call.all_hidden(b, first, queries, t, all)) continue;
    for (int i = 0; i < tiles.count; ++i) {
      const KeyTile& tile = tiles.list[i];
      const Index at = (tile.t - t) * kScoreTile;
      score_products(call, f, b, g, tile, cols, f.p + at, f.ds + at, ahead);
      cap_scores(call, tile, cols, f.p + at);
      if (call.cap > 0) std::copy_n(f.p + at, tile.keys * kScoreTile, f.capped);
      slope_scores(call, call.slope(g, r), first, tile, cols, f.p + at);
      hide_unseen(call, b, first, tile, queries, cols, f.p + at);
      if (call.drop_below > 0) draw_kept(call, f.random, tile, cols, f.kept);
      score_gradients(call, f, tile, cols, f.p + at, f.ds + at);
    }
    call.dots ? add_gradients_of_pairs(f, tiles, queries, e, ahead)
              : add_gradients(f, tiles, queries, e, ahead);
  }
  write_scaled(f.dquery_rows, {queries, e}, &call.scale, 0,
               result(call, call.dq, call.query_at(b, first, g, r), call.G * call.R * e));
}

}  // namespace

void backward(const AttentionCall& call, Index b, Index g, float* scratch) {
  const Backward f(scratch, call.E, call.T, call.dots);
  const Index e = call.E, row = call.G * e, wide = padded(e);
  const HeadRows &k = call.k, &v = call.v;
  const Operand keys = operand(call, k.data, k.at(b, g, 0), k.row);
  if (call.dots) {
    read_pairs(keys, {call.valid_t, e}, f.keys);
  } else {
    read_rows(keys, {call.valid_t, e}, f.keys);
    read_rows(operand(call, v.data, v.at(b, g, 0), v.row), {call.valid_t, e}, f.values);
  }
  std::fill(f.dkeys, f.dkeys + call.T * wide, 0.0F);
  std::fill(f.dvalues, f.dvalues + call.T * wide, 0.0F);
  for (Index r = 0; r < call.R; ++r) {
    const Index end = r < call.valid_r ? call.valid_s : 0;
    for (Index first = 0; first < end; first += kScoreTile) query_tile(call, f, b, g, r, first);
    const auto bytes = static_cast<std::size_t>(e * size_of(call.dtype));
    for (Index s = end; s < call.S; ++s)
      std::memset(result(call, call.dq, call.query_at(b, s, g, r), 0).data, 0, bytes);
  }
  const Index at = b * call.T * row + g * e;
  const Result dk = result(call, call.dk, at, row);
  // Pairs of queries are not scaled.
  call.dots ? write_scaled(f.dkeys, {call.T, e}, &call.scale, 0, dk)
            : write_rows(f.dkeys, {call.T, e}, dk);
  write_rows(f.dvalues, {call.T, e}, result(call, call.dv, at, row));
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(backward);

std::int64_t attention_backward_scratch(std::int64_t e, std::int64_t t, bool dots) {
  const std::int64_t wide = (e + 15) / 16 * 16, rows = 2 * t + (dots ? (t + 1) / 2 : 2 * t);
  return rows * wide + 2 * e * kScoreTile + 3 * kScoreTile * wide + 4 * kScoreTile * kScoreTile +
         4 * kScoreTile;
}

void attention_backward(const AttentionCall& call, std::int64_t b, std::int64_t g, float* scratch) {
  HWY_DYNAMIC_DISPATCH(backward)(call, b, g, scratch);
}

}  // namespace tessera::cpu
#endif
