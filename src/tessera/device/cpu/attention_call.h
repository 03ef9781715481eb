#pragma once
/// What the tiles of attention are handed, and how a head's work is called.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tessera/ops/attention_sight.h"
#include "tessera/tensor/dtype.h"

namespace tessera::cpu {

constexpr std::int64_t kScoreTile = 64;            // queries, and keys, of one tile of scores
constexpr std::int64_t kLowTile = kScoreTile / 4;  // keys of a low one
/// Up to so many queries are computed without tiles, from chunks of so many keys.
constexpr std::int64_t kFewQueries = 4, kKeyChunk = 256;

/// Rows of e channels that lie apart: element [b, row, g, r] of q, or [b, row, g] of k and v.
struct HeadRows {
  const void* data = nullptr;
  std::int64_t b = 0, row = 0, g = 0, r = 0;  // strides in elements; channels are adjacent
  /// The element that row 0 of a head begins with.
  std::int64_t at(std::int64_t ib, std::int64_t ig, std::int64_t ir) const {
    return ib * b + ig * g + ir * r;
  }
};

/// Local keys [begin, end).
struct KeyRange {
  std::int64_t begin, end;
};

/// Keys [t, t + keys) against a tile of queries, of which those before `from` see none of them.
struct KeyTile {
  std::int64_t t, keys, from;
};

/// One call of attention or its gradient. Everything is computed in f32; what lies in 16 bits is
/// widened where it is read and rounded where it is written. With `dots`, probabilities and
/// gradients of scores are rounded too before they are multiplied. Random numbers are drawn for the
/// index in [b, g, r, s, t] of the whole tensor.
struct AttentionCall {
  std::int64_t B = 0, S = 0, G = 0, R = 0, E = 0, T = 0;  // local sizes
  std::int64_t valid_s = 0, valid_r = 0, valid_t = 0;     // what lies inside the logical extents
  std::int64_t first_query = 0, first_key = 0;  // logical positions of the first local ones
  float scale = 1, cap = 0;                     // of scores; a cap of 0: none
  Sight sight;                                  // of a query, by position
  const float* slopes = nullptr;                // [G, R], or none
  const bool* mask = nullptr;                   // keys that are seen: rows of T,
  std::int64_t mask_b = 0, mask_s = 0;  // at these strides; mask_s 0: one row for all queries

  std::int32_t drop_below = 0;  // dropped where 24 random bits are below this; 0: no dropout
  float keep_scale = 1;         // 1 / (1 - p)
  std::uint64_t key = 0, step = 0;
  std::int64_t index_b = 0, index_g = 0, index_r = 0;  // offsets of the random index
  std::int64_t global_g = 0, global_r = 0, global_s = 0, global_t = 0;  // and its extents

  bool dots = false;         // bf16, and products by AVX512-BF16
  DType dtype = DType::F32;  // of all that has channels: F32, BF16 or F16
  HeadRows q, k, v;
  void* y = nullptr;  // forward: results
  float* logsumexp = nullptr;
  const void *dy = nullptr, *y_in = nullptr;  // backward: operands, and the results
  const float *logsumexp_in = nullptr, *dlogsumexp = nullptr;  // the second: or none
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;

  std::int64_t query_at(std::int64_t b, std::int64_t s, std::int64_t g, std::int64_t r) const {
    return (((b * S + s) * G + g) * R + r) * E;
  }
  std::int64_t row_at(std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s) const {
    return ((b * G + g) * R + r) * S + s;
  }
  /// What scores of a head grow by from one key to the next.
  float slope(std::int64_t g, std::int64_t r) const {
    return slopes == nullptr ? 0 : slopes[g * R + r];
  }
  const bool* mask_row(std::int64_t b, std::int64_t s) const {
    return mask + b * mask_b + s * mask_s;
  }
  /// True where the mask hides keys [t, t + keys) from all queries [s, s + queries).
  bool all_hidden(std::int64_t b, std::int64_t s, std::int64_t queries, std::int64_t t,
                  std::int64_t keys) const {
    if (mask == nullptr) return false;
    const std::int64_t rows = mask_s == 0 ? 1 : queries;
    for (std::int64_t i = 0; i < rows; ++i) {
      if (std::memchr(mask_row(b, s + i) + t, 1, static_cast<std::size_t>(keys)) != nullptr)
        return false;
    }
    return true;
  }
  /// The random index of (b, g, r, s) and the first local key.
  std::int64_t random_index(std::int64_t b, std::int64_t g, std::int64_t r, std::int64_t s) const {
    const std::int64_t head = ((index_b + b) * global_g + index_g + g) * global_r + index_r + r;
    return (head * global_s + first_query + s) * global_t + first_key;
  }
  /// Of local key `t` before local query `s`, in logical positions.
  std::int64_t ahead(std::int64_t t, std::int64_t s) const {
    return first_key + t - first_query - s;
  }
  /// The keys that some of local queries [s, s + queries) see by their positions.
  KeyRange keys_of(std::int64_t s, std::int64_t queries) const {
    const std::int64_t last = s + queries - 1;
    const std::int64_t end = std::clamp(sight.last + 1 - ahead(0, last), std::int64_t{0}, valid_t);
    return {std::clamp(sight.first - ahead(0, s), std::int64_t{0}, end), end};
  }
  /// The same, from the beginning of a low tile on.
  KeyRange tiled_keys_of(std::int64_t s, std::int64_t queries) const {
    const auto [begin, end] = keys_of(s, queries);
    return {begin / kLowTile * kLowTile, end};
  }
  /// The tile that starts at key `t` < `end`, for queries from local `s` on. Where the line runs
  /// through it behind which keys are too far ahead, it is low, so that less work is thrown away.
  KeyTile key_tile(std::int64_t t, std::int64_t end, std::int64_t s) const {
    const std::int64_t from = ahead(t, s) - sight.last;  // the first query that sees key t
    if (from + kScoreTile <= 1) return {t, std::min(kScoreTile, end - t), 0};
    return {t, std::min(kLowTile, end - t), std::max(from, std::int64_t{0}) / 16 * 16};
  }
};

/// Floats of scratch, 64-byte aligned, that one thread needs.
std::int64_t attention_forward_scratch(std::int64_t e);
std::int64_t attention_backward_scratch(std::int64_t e, std::int64_t t, bool dots);

/// y and logsumexp of queries [first, first + kScoreTile) of one head.
void attention_forward(const AttentionCall& call, std::int64_t b, std::int64_t g, std::int64_t r,
                       std::int64_t first, float* scratch);
/// What keys [chunk * kKeyChunk, (chunk + 1) * kKeyChunk) are to all queries of a key-value head:
/// for query (r, s), at parts + (r * S + s) * stride, the largest score, the sum of exponentials
/// relative to it, and with these the sums of e channels of values. Without dropout.
void attention_few(const AttentionCall& call, std::int64_t b, std::int64_t g, std::int64_t chunk,
                   float* parts, std::int64_t stride);
/// y and logsumexp of query `row`, an index in [b, g, r, s], from its parts, which lie densely; the
/// first one becomes their sum.
void attention_join(const AttentionCall& call, std::int64_t row, float* parts, std::int64_t chunks);
/// dq of all query heads of one key-value head, and its dk and dv. Sums run in one order, whoever
/// calls.
void attention_backward(const AttentionCall& call, std::int64_t b, std::int64_t g, float* scratch);

}  // namespace tessera::cpu
