#pragma once
/// Attention of ops that hold all scores, for what the op `attention` does not compute.

#include "tessera/nn/transformer.h"

namespace tessera {

/// What q k^T is multiplied by: attention_scale, or 1 / sqrt(head_width).
double scale_of(const TransformerLayer& layer, std::int64_t head_width);

/// Which keys are seen by position, of i32 positions that broadcast: bools; empty: all.
Value seen_by_position(Value queries, Value keys, bool causal, std::int64_t window);

/// What the rows of distances add to scores: [b, g, r, s, t]. q [b, s, g, r, e], k [b, t, g, e];
/// of_rows [m, g, r + 2, e]: queries, a key and a value of each row; kinds [s, t].
Value distance_scores(Value q, Value k, Value of_rows, Value kinds, double scale, Where where);

/// Attention with a bias or with the scores of the layer before: q [b, s, g, r, e] -> [b, s, g, r,
/// e].
Value scores_attention(Value q, Value k, Value v, const TransformerLayer& layer,
                       const Visible& visible, std::int64_t window, const Pass& pass, Where where);

}  // namespace tessera
