#include "tessera/nn/attention/held_scores.h"

#include <cmath>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

/// Of `a` only where it is not empty.
Value and_also(Value a, Value b) { return a.valid() ? logical_and(a, b) : b; }

/// What is seen, as bools that broadcast to scores [b, g, r, s, t]; empty: all is.
Value seen_of(const Visible& visible, std::int64_t window, Builder& builder, std::int64_t s,
              std::int64_t t, Where where) {
  Value out;
  if (visible.causal || window > 0)
    out = seen_by_position(iota(builder, {s, t}, 0, DType::I32, where),
                           iota(builder, {s, t}, 1, DType::I32, where), visible.causal,
                           window);  // [s, t]
  if (!visible.mask.valid()) return out;
  const Shape& shape = visible.mask.shape();
  const std::int64_t queries = shape.ndim() == 3 ? s : 1;
  const Value mask = reshape(visible.mask, {shape[0], 1, 1, queries, t}, where);
  return and_also(out, mask);
}

}  // namespace

double scale_of(const TransformerLayer& layer, std::int64_t head_width) {
  return layer.attention_scale == 0 ? 1 / std::sqrt(static_cast<double>(head_width))
                                    : layer.attention_scale;
}

Value seen_by_position(Value queries, Value keys, bool causal, std::int64_t window) {
  const auto is_near = [&](Value from, Value to) {
    return less(to - from, from.builder().constant(static_cast<double>(window), DType::I32));
  };
  Value out;
  if (causal) out = less_equal(keys, queries);
  if (window > 0) out = and_also(out, is_near(keys, queries));
  if (window > 0 && !causal) out = and_also(out, is_near(queries, keys));
  return out;
}

Value distance_scores(Value q, Value k, Value of_rows, Value kinds, double scale, Where where) {
  const Shape& shape = q.shape();
  const std::int64_t b = shape[0], s = shape[1], g = shape[2], r = shape[3], e = shape[4],
                     t = k.shape()[1], m = of_rows.shape()[0];
  const Value queries = slice(of_rows, 2, 0, r);                   // [m, g, r, e]
  const Value keys = reshape(slice(of_rows, 2, r, 1), {m, g, e});  // [m, g, e]
  const auto of_pairs = [&](Value scores, Value rows, const Shape& pairs) {
    return take_along(scores, broadcast_to(rows, {b, g, r, pairs[0], pairs[1]}), where);
  };
  const Value by_query =
      of_pairs(einsum("b s g r e, m g e -> b g r s m", q * scale, keys, where), kinds, {s, t});
  const Value by_key = of_pairs(einsum("b t g e, m g r e -> b g r t m", k * scale, queries, where),
                                transpose(kinds, {1, 0}, where), {t, s});
  return by_query + transpose(by_key, {0, 1, 2, 4, 3}, where);
}

Value scores_attention(Value q, Value k, Value v, const TransformerLayer& layer,
                       const Visible& visible, std::int64_t window, const Pass& pass, Where where) {
  require(!layer.sinks, "attention at ", where.file, ":", where.line,
          ": with a bias, or scores of the layer before, it has no sinks");
  // Of keys that are not seen. A number that f16 has too: infinities would make NaN of a query that
  // sees none.
  constexpr double kUnseen = -30'000;
  Builder& builder = q.builder();
  const Shape& shape = q.shape();
  const std::int64_t s = shape[1], g = shape[2], r = shape[3], t = k.shape()[1];
  const double scale = scale_of(layer, shape[4]);
  Value scores = einsum("b s g r e, b t g e -> b g r s t", scale == 1 ? q : q * scale, k, where);
  if (layer.attention_cap > 0)
    scores = tanh(scores * (1 / layer.attention_cap)) * layer.attention_cap;
  if (const Value bias = visible.bias; bias.valid())
    scores = scores + (bias.ndim() == 5 ? bias : reshape(bias, {g, r, s, t}, where));
  if (visible.slopes.valid()) {
    const Value ahead =
        iota(builder, {s, t}, 1, DType::I32, where) - iota(builder, {s, t}, 0, DType::I32, where);
    scores = scores + cast(reshape(visible.slopes, {g, r, 1, 1}, where) *
                               cast(ahead, visible.slopes.dtype()),
                           scores.dtype());
  }
  if (visible.residual != nullptr) {
    if (visible.residual->valid()) scores = scores + *visible.residual;
    *visible.residual = scores;
  }
  const Value seen = seen_of(visible, window, builder, s, t, where);
  if (seen.valid()) scores = select(seen, scores, builder.constant(kUnseen, scores.dtype(), where));
  const Value shares = dropout_layer(softmax(scores, -1, where), layer.attention_dropout, pass.step,
                                     "dropout", where);  // [b, g, r, s, t]
  return einsum("b g r s t, b t g e -> b s g r e", shares, v, where);
}

}  // namespace tessera
