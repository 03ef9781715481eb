#pragma once
/// What kinds of attention have in common: heads, caches, scores and the projection behind them.

#include <utility>

#include "tessera/nn/transformer.h"

// Shapes below: b batch, s context (of queries), t context (of keys), d width, g key-value heads, r
// query heads of each, e width of a head.
namespace tessera {

/// How many heads there are, and how wide each is.
struct Heads {
  std::int64_t groups, per_group, width;
};
/// Errors: sizes that do not divide each other.
Heads heads_of(std::int64_t width, const TransformerLayer& layer, Where where);

/// Of queries, keys and values.
LinearOptions of_attention(const TransformerLayer& layer);
/// A linear layer of attention or feed-forward, with the layer's adapters.
Value layer_linear(Value x, std::string_view name, std::int64_t out, const LinearOptions& options,
                   const TransformerLayer& layer, const Pass& pass, Where where,
                   const std::vector<RowPart>& parts = {});

/// Attention of q [b, s, g, r, e], and the projection of its result to `width`. `window`: where
/// positions of queries and keys count from the same one.
Value attended(Value q, Value k, Value v, std::int64_t width, const TransformerLayer& layer,
               const Visible& visible, std::int64_t window, const Pass& pass, Where where);
/// The same of keys and values [b, s, g, e] of the queries' positions, and of those in caches.
Value attended_so_far(Value q, Value k, Value v, std::int64_t width, const TransformerLayer& layer,
                      const Visible& visible, const Pass& pass, Where where);

/// Positions [b, s] of the tokens of this run.
Value run_positions(Value x, const Pass& pass, Where where);

/// Keys and values [b, t, g, e] of what an encoder made [b, t, m].
std::pair<Value, Value> encoded_keys(Value encoded, const Heads& heads,
                                     const TransformerLayer& layer, const Pass& pass, Where where);

}  // namespace tessera
