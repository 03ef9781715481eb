#pragma once
/// Scaled dot-product attention with grouped queries, as one op, and rotary positions.

#include "tessera/ir/builder.h"
#include "tessera/ops/rotary.h"

namespace tessera {

struct AttentionOptions {
  bool causal = true;  // key position <= query position (positions counted from 0 in both)
  /// Key and query positions lie less than so many apart; 0: any number. A causal query sees
  /// itself and the window - 1 keys before it.
  std::int64_t window = 0;
  double scale = 0;  // of the scores; 0: 1 / sqrt(head_dim)
  double cap = 0;    // above 0: scaled scores become cap * tanh(score / cap)
  /// [g, r], of the type of logsumexp, or empty: slope * (key position - query position) is added
  /// to scores, behind a cap. They get no gradient. Source: Press et al. 2022 (ALiBi), arXiv
  /// 2108.12409.
  Value slopes = {};
  double dropout = 0;  // of the probabilities; needs `step` and `name`
  std::string_view name = "dropout";
};

struct AttentionResult {
  Value y;          // [b, s, g, r, e]
  Value logsumexp;  // [b, g, r, s]: of the masked, scaled scores
};

/// softmax(q k^T * scale, capped, sloped, masked) v.
///
/// Shapes: q [b, s, g, r, e]; k, v [b, t, g, e]: g key-value heads, r query heads for each of them
///         (r = 1: plain multi-head attention); mask bool or empty: the keys that may be seen, [b,
///         t] by all queries or [b, s, t] by each; step: i64 scalar or empty (no dropout).
/// A key is seen where both the mask and, with `causal` or a window, its position allow it.
/// Kernels never hold the [s, t] scores of a head whole. Random numbers of dropout are drawn for
/// the logical index in [b, g, r, s, t]. A row that may see no key gives zeros, and a logsumexp of
/// -infinity.
/// Source: Dao et al. 2022, arXiv 2205.14135.
AttentionResult attention(Value q, Value k, Value v, Value mask, Value step,
                          const AttentionOptions& options, Where where = Where::here());

// attention_grad (dy, q, k, v, y, logsumexp[, dlogsumexp][, mask][, slopes][, step]) -> (dq, dk,
// dv).
extern const OpDef kAttention, kAttentionGrad;

/// merge_attention (y, logsumexp, y_b, logsumexp_b) -> (y, logsumexp): attention over two sets of
/// keys, from that over each. y [b, s, g, r, e] and all logsumexp [b, g, r, s] are f32 where y_b
/// has 16 bits. Passes insert it.
extern const OpDef kMergeAttention;

/// Rotates channel pairs (i, i + p) of `x` by position * rates[i], i < p, and multiplies them by
/// `factor`: rotary embedding, RoPE. Channels from 2p on stay as they are.
///
/// Shapes:  x [b, s, ..., e]; positions [b, s] of i32; p rates. Returns the type of x.
/// Units:   angles in radians; the inverse rotates backwards, and multiplies by `factor` too.
/// Numeric: angles in f32 (f64 when interpreted in f64).
/// Errors:  no rates, or more than e/2; positions not i32 or of another batch or length.
/// Source:  Su et al. 2021, RoFormer, arXiv 2104.09864, section 3.4.2.
Value rope(Value x, Value positions, const RotaryRates& rates, bool inverse = false,
           Where where = Where::here());
/// All e channels, by position * base^(-2i/e).
Value rope(Value x, Value positions, double base = 10'000.0, bool inverse = false,
           Where where = Where::here());

extern const OpDef kRope;

}  // namespace tessera
