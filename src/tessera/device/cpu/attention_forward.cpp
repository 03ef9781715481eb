#include <algorithm>
#include <cmath>

#include "tessera/device/cpu/attention_call.h"
#include "tessera/device/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/attention_forward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/attention_tile.h"
#include "tessera/device/cpu/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

/// Where things lie in a thread's scratch; tiles are [.][kTile].
struct Forward {
  float *queries, *sums, *values, *scores, *kept;  // [e], [e], [key][e], [key], [key]
  float *top, *total, *shrink;                     // per query
  std::uint64_t* random;

  Forward(float* scratch, Index e) {
    const auto take = [&](Index n) { return std::exchange(scratch, scratch + n); };
    queries = take(e * kTile), sums = take(e * kTile), values = take(e * kTile);
    scores = take(kTile * kTile), kept = take(kTile * kTile);
    top = take(kTile), total = take(kTile), shrink = take(kTile);
    random = reinterpret_cast<std::uint64_t*>(take(2 * kTile));
  }
};

/// Scores become probabilities under the running maximum; `shrink` is what earlier sums are
/// multiplied with.
HWY_INLINE void online_softmax(const Forward& f, Index from, Index to, Index keys) {
  const D d;
  const V none = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (Index c = from; c < to; c += lanes()) {
    const V before = hn::Load(d, f.top + c);
    V top = before;
    for (Index j = 0; j < keys; ++j) top = hn::Max(top, hn::Load(d, f.scores + j * kTile + c));
    // A query that has seen no key yet: -infinity - 0, not -infinity - -infinity.
    const V base = hn::IfThenElse(hn::Eq(top, none), hn::Zero(d), top);
    V sum = hn::Zero(d);
    for (Index j = 0; j < keys; ++j) {
      float* const at = f.scores + j * kTile + c;
      const V p = exp_of(d, hn::Sub(hn::Load(d, at), base));
      sum = hn::Add(sum, p);
      hn::Store(p, d, at);
    }
    const V shrink = exp_of(d, hn::Sub(before, base));
    hn::Store(top, d, f.top + c);
    hn::Store(shrink, d, f.shrink + c);
    hn::Store(hn::MulAdd(hn::Load(d, f.total + c), shrink, sum), d, f.total + c);
  }
}

HWY_INLINE void drop(const Forward& f, Index from, Index to, Index keys) {
  const D d;
  for (Index j = 0; j < keys; ++j) {
    for (Index c = from; c < to; c += lanes()) {
      float* const at = f.scores + j * kTile + c;
      hn::Store(hn::Mul(hn::Load(d, at), hn::Load(d, f.kept + j * kTile + c)), d, at);
    }
  }
}

/// y = sums / total, turned back; a query without keys gives zeros.
HWY_INLINE void finish(const AttentionCall& call, const Forward& f, Index b, Index g, Index r,
                       Index first, Index queries) {
  float* const logsumexp = call.logsumexp + call.row_at(b, g, r, first);
  for (Index i = 0; i < queries; ++i) {
    const float total = f.total[i];  // log and division of one number per query: not worth vectors
    logsumexp[i] = f.top[i] + std::log(total);
    f.shrink[i] = total == 0 ? 0.0F : 1 / total;
  }
  const Index cols = (queries + lanes() - 1) / lanes() * lanes();
  std::fill(f.shrink + queries, f.shrink + cols, 0.0F);
  scale_columns(f.sums, call.E, 0, cols, f.shrink);
  transpose(f.sums, kTile, call.E, queries, call.y + call.query_at(b, first, g, r),
            call.G * call.R * call.E);
}

}  // namespace

void forward(const AttentionCall& call, Index b, Index g, Index r, Index first, float* scratch) {
  const Forward f(scratch, call.E);
  const Index e = call.E, queries = std::min(kTile, call.S - first);
  const Index cols = (queries + lanes() - 1) / lanes() * lanes();
  load_turned(call.q.at(b, g, r) + first * call.q.row, call.q.row, queries, cols, e, call.scale,
              f.queries);
  std::fill(f.top, f.top + kTile, -std::numeric_limits<float>::infinity());
  std::fill(f.total, f.total + kTile, 0.0F);
  std::fill(f.sums, f.sums + e * kTile, 0.0F);
  for (Index i = 0; i < cols && call.drop_below > 0; ++i) {
    f.random[i] =
        static_cast<std::uint64_t>(call.random_index(b, g, r, first + std::min(i, queries - 1)));
  }
  const float *k = call.k.at(b, g, 0), *v = call.v.at(b, g, 0);
  const Index end = call.keys_before(first + queries - 1);
  KeyTile tile{};
  for (Index t = 0; t < end; t += tile.keys) {
    tile = call.key_tile(t, end, first);
    const Index keys = tile.keys, from = tile.from, width = cols - from;
    multiply({keys, width, e, k + t * call.k.row, call.k.row, 1, f.queries + from, kTile,
              f.scores + from, kTile, false});
    hide_unseen(call, b, first, tile, cols, f.scores);
    online_softmax(f, from, cols, keys);
    if (call.drop_below > 0) {
      draw_kept(call, f.random, tile, cols, f.kept);
      drop(f, from, cols, keys);
    }
    if (t > 0) scale_columns(f.sums, e, from, cols, f.shrink);
    // Values are read channel by channel, many times: together, not at rows that lie far apart.
    for (Index j = 0; j < keys; ++j) {
      std::memcpy(f.values + j * e, v + (t + j) * call.v.row,
                  static_cast<std::size_t>(e) * sizeof(float));
    }
    multiply({e, width, keys, f.values, 1, e, f.scores + from, kTile, f.sums + from, kTile, true});
  }
  finish(call, f, b, g, r, first, queries);
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(forward);

std::int64_t attention_forward_scratch(std::int64_t e) { return (3 * e + 2 * kTile + 5) * kTile; }

void attention_forward(const AttentionCall& call, std::int64_t b, std::int64_t g, std::int64_t r,
                       std::int64_t first, float* scratch) {
  HWY_DYNAMIC_DISPATCH(forward)(call, b, g, r, first, scratch);
}

}  // namespace tessera::cpu
#endif
