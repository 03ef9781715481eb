// Attention of a few queries, as when text is generated token by token: keys and values are read
// once, a block at a time, and lanes are channels. Keys are cut into chunks of one size, whose sums
// are added in order: bits do not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/device/cpu/attention_call.h"
#include "tessera/gemm/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/device/cpu/attention_few.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "tessera/device/cpu/attention_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu::HWY_NAMESPACE {
namespace {

constexpr Index kBlock =
    64;  // keys whose scores are held: with their values a block fits the cache
constexpr float kNone = -std::numeric_limits<float>::infinity();

/// Of one query: its scores with `keys` keys.
template <typename T>
HWY_INLINE void score(const T* q, const T* k, Index stride, Index keys, Index e, float scale,
                      float* scores) {
  const D d;
  const Index n = lanes();
  for (Index j = 0; j < keys; ++j, k += stride) {
    V even = hn::Zero(d), odd = hn::Zero(d);
    Index c = 0;
    for (; c + 2 * n <= e; c += 2 * n) {
      even = hn::MulAdd(load_vector(d, q + c), load_vector(d, k + c), even);
      odd = hn::MulAdd(load_vector(d, q + c + n), load_vector(d, k + c + n), odd);
    }
    if (c + n <= e) even = hn::MulAdd(load_vector(d, q + c), load_vector(d, k + c), even), c += n;
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    for (; c < e; ++c) sum += load_one(q + c) * load_one(k + c);
    scores[j] = sum * scale;
  }
}

/// `scores` has room for whole vectors.
HWY_INLINE void cap_scores(const AttentionCall& call, Index keys, float* scores) {
  const D d;
  if (call.cap == 0) return;
  std::fill(scores + keys, scores + (keys + lanes() - 1) / lanes() * lanes(), 0.0F);
  for (Index j = 0; j < keys; j += lanes())
    hn::Store(capped(hn::Load(d, scores + j), call.cap), d, scores + j);
}

/// sums = sums * shrink + p v, for some vectors of channels.
template <typename T, std::size_t... I>
HWY_INLINE void add_channels(const float* p, const T* v, Index stride, Index keys, V shrink,
                             float* sums, std::index_sequence<I...>) {
  const D d;
  const Index n = lanes();
  V all[] = {hn::Mul(hn::LoadU(d, sums + static_cast<Index>(I) * n), shrink)...};
  for (Index j = 0; j < keys; ++j, v += stride) {
    const V factor = hn::Set(d, p[j]);
    ((all[I] = hn::MulAdd(factor, load_vector(d, v + static_cast<Index>(I) * n), all[I])), ...);
  }
  (hn::StoreU(all[I], d, sums + static_cast<Index>(I) * n), ...);
}

template <typename T>
HWY_INLINE void add_values(const float* p, const T* v, Index stride, Index keys, Index e,
                           float shrink, float* sums) {
  const Index n = lanes();
  const V all = hn::Set(D(), shrink);
  Index c = 0;
  for (; c + 4 * n <= e; c += 4 * n)
    add_channels(p, v + c, stride, keys, all, sums + c, std::make_index_sequence<4>());
  for (; c + n <= e; c += n)
    add_channels(p, v + c, stride, keys, all, sums + c, std::make_index_sequence<1>());
  for (; c < e; ++c) {
    float sum = sums[c] * shrink;
    for (Index j = 0; j < keys; ++j) sum += p[j] * load_one(v + j * stride + c);
    sums[c] = sum;
  }
}

/// Scores become exp(score - base); their sum. `scores` has room for whole vectors.
HWY_INLINE float exponentials(float* scores, Index keys, float base) {
  const D d;
  for (Index j = keys; j < (keys + lanes() - 1) / lanes() * lanes(); ++j) scores[j] = kNone;
  V sum = hn::Zero(d);
  for (Index j = 0; j < keys; j += lanes()) {
    const V p = exp_of(d, hn::Sub(hn::Load(d, scores + j), hn::Set(d, base)));
    sum = hn::Add(sum, p);
    hn::Store(p, d, scores + j);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// A query and a block of keys [t, t + keys): part = (top, total, sums) of all blocks so far.
template <typename T>
HWY_INLINE void add_block(const AttentionCall& call, Index b, Index g, Index r, Index s, Index t,
                          Index keys, float* part) {
  alignas(64) float scores[kBlock];
  const HeadRows &q = call.q, &k = call.k, &v = call.v;
  const auto at = [](const HeadRows& rows, Index i) {
    return static_cast<const T*>(rows.data) + i;
  };
  score(at(q, q.at(b, g, r) + s * q.row), at(k, k.at(b, g, 0) + t * k.row), k.row, keys, call.E,
        call.scale, scores);
  cap_scores(call, keys, scores);
  if (const float slope = call.slope(g, r); slope != 0) {
    for (Index j = 0; j < keys; ++j) scores[j] += slope * static_cast<float>(call.ahead(t + j, s));
  }
  const bool* const seen = call.mask == nullptr ? nullptr : call.mask_row(b, s) + t;
  for (Index j = 0; j < keys && seen != nullptr; ++j) scores[j] = seen[j] ? scores[j] : kNone;
  const float before = part[0], top = std::max(before, *std::max_element(scores, scores + keys));
  const float base = top == kNone ? 0 : top;  // not -infinity - -infinity
  const float shrink = before == kNone ? 0 : std::exp(before - base);
  part[0] = top;
  part[1] = part[1] * shrink + exponentials(scores, keys, base);
  add_values(scores, at(v, v.at(b, g, 0) + t * v.row), v.row, keys, call.E, shrink, part + 2);
}

template <typename T>
HWY_INLINE void few_queries_of(const AttentionCall& call, Index b, Index g, Index chunk,
                               float* parts, Index stride) {
  const Index rows = call.R * call.S, begin = chunk * kKeyChunk;
  for (Index i = 0; i < rows; ++i) {
    float* const part = parts + i * stride;
    part[0] = kNone;
    std::fill(part + 1, part + 2 + call.E, 0.0F);
  }
  const KeyRange seen = call.keys_of(0, call.S);
  const Index end = std::min(begin + kKeyChunk, seen.end);
  for (Index t = std::max(begin, seen.begin); t < end; t += kBlock) {
    for (Index s = 0; s < call.S; ++s) {
      const KeyRange of_query = call.keys_of(s, 1);
      const Index from = std::max(t, of_query.begin),
                  keys = std::min({t + kBlock, end, of_query.end}) - from;
      if (keys <= 0 || call.all_hidden(b, s, 1, from, keys)) continue;
      for (Index r = 0; r < call.R; ++r)
        add_block<T>(call, b, g, r, s, from, keys, parts + (r * call.S + s) * stride);
    }
  }
}

}  // namespace

void few_queries(const AttentionCall& call, Index b, Index g, Index chunk, float* parts,
                 Index stride) {
  with_stored(call.dtype, [&](auto zero) HWY_ATTR {
    few_queries_of<decltype(zero)>(call, b, g, chunk, parts, stride);
  });
}

void join_parts(const AttentionCall& call, Index row, float* parts, Index chunks) {
  const Index e = call.E, step = e + 2;
  const Index s = row % call.S, r = row / call.S % call.R, head = row / call.S / call.R;
  const Index b = head / call.G, g = head % call.G;
  float top = kNone, total = 0;
  for (Index i = 0; i < chunks; ++i) top = std::max(top, parts[i * step]);
  const float base = top == kNone ? 0 : top;
  float* const sums = parts + 2;
  for (Index i = 0; i < chunks; ++i) {
    const float* const part = parts + i * step;
    const float weight = std::exp(part[0] - base);
    total += part[1] * weight;
    for (Index c = 0; c < e; ++c) sums[c] = part[2 + c] * weight + (i == 0 ? 0 : sums[c]);
  }
  call.logsumexp[call.row_at(b, g, r, s)] = top + std::log(total);
  const float factor = total == 0 ? 0 : 1 / total;  // a query that sees no key gives zeros
  write_scaled(sums, {1, e}, &factor, 0, result(call, call.y, call.query_at(b, s, g, r), e));
}

}  // namespace tessera::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(few_queries);
HWY_EXPORT(join_parts);

void attention_few(const AttentionCall& call, std::int64_t b, std::int64_t g, std::int64_t chunk,
                   float* parts, std::int64_t stride) {
  HWY_DYNAMIC_DISPATCH(few_queries)(call, b, g, chunk, parts, stride);
}

void attention_join(const AttentionCall& call, std::int64_t row, float* parts,
                    std::int64_t chunks) {
  HWY_DYNAMIC_DISPATCH(join_parts)(call, row, parts, chunks);
}

}  // namespace tessera::cpu
#endif
