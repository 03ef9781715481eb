#include "tessera/nn/transformer.h"

#include <cmath>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/nn/activated.h"
#include "tessera/nn/attention/held_scores.h"
#include "tessera/nn/attention/sinks.h"
#include "tessera/nn/experts.h"
#include "tessera/nn/tensor_cuts.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

// Shapes below: b batch, s context (of queries), t context (of keys), d width, g key-value heads, r
// query heads of each, e width of a head, h hidden width of feed-forward.
namespace tessera {

namespace {

constexpr TensorCut kCuts[] = {
    {"*.attn.qkv.weight", 0, 2},
    {"*.attn.qkv.bias", 0, 1},
    {"*.attn.proj.weight", 1, 2},
    {"*.attn.sinks.weight", 0, 1},
    {"*.attn.keys", 2, 4},
    {"*.attn.values", 2, 4},
    {"*.cross.q.weight", 0, 2},
    {"*.cross.q.bias", 0, 1},
    {"*.cross.kv.weight", 0, 2},
    {"*.cross.kv.bias", 0, 1},
    {"*.cross.proj.weight", 1, 2},
    {"*.cross.keys", 2, 4},
    {"*.cross.values", 2, 4},
    {"*.mlp.up.weight", 0, 2},
    {"*.mlp.up.bias", 0, 1},
    {"*.mlp.gate.weight", 0, 2},
    {"*.mlp.gate.bias", 0, 1},
    {"*.mlp.down.weight", 1, 2},
    {"*.mlp.shared.up.weight", 0, 2},
    {"*.mlp.shared.gate.weight", 0, 2},
    {"*.mlp.shared.down.weight", 1, 2},
    {"*.mlp.experts.up.bias", 1, 2, false, true},
    {"*.mlp.experts.gate.bias", 1, 2, false, true},
    {"*.mlp.experts.down.bias", -1, 2, false, true},
    {"*.mlp.experts.up.weight", 1, 3, false, true},
    {"*.mlp.experts.gate.weight", 1, 3, false, true},
    {"*.mlp.experts.down.weight", 2, 3, false, true},
    {"embed.token.weight", 0, 2, true},
    {"head.weight", 0, 2},
    // Of adapters, what lies along a cut dim of their weight.
    {"*.attn.qkv*.lora_b", 0, 2},
    {"*.attn.proj.lora_a", 1, 2},
    {"*.cross.q.lora_b", 0, 2},
    {"*.cross.kv*.lora_b", 0, 2},
    {"*.cross.proj.lora_a", 1, 2},
    {"*.mlp.up.lora_b", 0, 2},
    {"*.mlp.gate.lora_b", 0, 2},
    {"*.mlp.down.lora_a", 1, 2},
};

/// How many heads there are, and how wide each is.
struct Heads {
  std::int64_t groups, per_group, width;
};

Heads heads_of(std::int64_t width, const TransformerLayer& layer, Where where) {
  const bool whole = layer.heads > 0 && (layer.head_width > 0 || width % layer.heads == 0);
  require(whole && layer.heads % layer.groups() == 0, "attention at ", where.file, ":", where.line,
          ": ", layer.heads, " heads over a width of ", width, " and ", layer.groups(),
          " key-value heads; heads must divide the width, and key-value heads the heads");
  return {layer.groups(), layer.heads / layer.groups(),
          layer.head_width > 0 ? layer.head_width : width / layer.heads};
}

/// A linear layer of attention or feed-forward.
Value layer_linear(Value x, std::string_view name, std::int64_t out, const LinearOptions& options,
                   const TransformerLayer& layer, const Pass& pass, Where where,
                   const std::vector<RowPart>& parts = {}) {
  return lora_linear({x}, name, out, options, layer.lora, parts, pass.step, where)[0];
}

/// Attention of q [b, s, g, r, e], and the projection of its result to `width`. `window`: where
/// positions of queries and keys count from the same one.
Value attended(Value q, Value k, Value v, std::int64_t width, const TransformerLayer& layer,
               const Visible& visible, std::int64_t window, const Pass& pass, Where where) {
  Value y;
  if (visible.bias.valid() || visible.residual != nullptr) {
    y = scores_attention(q, k, v, layer, visible, window, pass, where);  // [b, s, g, r, e]
  } else {
    AttentionOptions options;
    options.causal = visible.causal;
    options.window = window;
    options.scale = layer.attention_scale;
    options.cap = layer.attention_cap;
    options.slopes = visible.slopes;
    const bool drop = pass.step.valid() && layer.attention_dropout > 0;
    if (drop) options.dropout = layer.attention_dropout;
    y = beside_sinks(attention(q, k, v, visible.mask, drop ? pass.step : Value(), options, where),
                     layer, where);
  }
  const Shape& shape = q.shape();
  const Value rows = reshape(y, {shape[0], shape[1], shape[2] * shape[3] * shape[4]});
  rows.builder().set_name(rows, "of_heads");
  const Value out =
      layer_linear(rows, "proj", width, {layer.bias || layer.proj_bias, layer.residual_init}, layer,
                   pass, where);  // [b, s, g r e] -> [b, s, d]
  return dropout_layer(out, layer.hidden_dropout, pass.step, "residual_dropout", where);
}

/// Of queries, keys and values.
LinearOptions of_attention(const TransformerLayer& layer) {
  return {layer.bias || layer.qkv_bias, layer.attention_init.value_or(layer.init)};
}

/// Keys or values of the whole sequence so far: x [b, n, g, e], behind those in the cache.
Value remembered(Value x, std::string_view name, const Pass& pass, Where where) {
  Builder& builder = x.builder();
  const Shape& shape = x.shape();
  const Value cache =
      builder.state(name, {x.dtype(), {shape[0], pass.room, shape[2], shape[3]}, {}}, Role::Cache,
                    {Init::Kind::Constant, 0}, where);
  const Value all = dynamic_update(cache, x, 1, pass.position, where);  // [b, room, g, e]
  builder.next(cache, all);
  return all;
}

/// Keys and values [b, t, g, e] of what an encoder made [b, t, m].
std::pair<Value, Value> encoded_keys(Value encoded, const Heads& heads,
                                     const TransformerLayer& layer, const Pass& pass, Where where) {
  const auto [g, r, e] = heads;
  const std::int64_t b = encoded.shape()[0], t = encoded.shape()[1];
  const Value rows = layer_linear(encoded, "kv", g * 2 * e, of_attention(layer), layer, pass, where,
                                  joined_rows("kv", 0, e));
  const Value kv = reshape(rows, {b, t, g, 2, e});
  kv.builder().set_name(kv, "kv_heads");
  return {reshape(slice(kv, 3, 0, 1), {b, t, g, e}), reshape(slice(kv, 3, 1, 1), {b, t, g, e})};
}

/// The caches of cross attention.
struct CrossCaches {
  Value keys, values, seen;
};

CrossCaches cross_caches(Builder& builder, std::int64_t b, std::int64_t t, const Heads& heads,
                         DType dtype, Where where) {
  const auto cache = [&](std::string_view name, const TensorType& type) {
    return builder.state(name, type, Role::Cache, {Init::Kind::Constant, 0}, where);
  };
  const TensorType rows{dtype, {b, t, heads.groups, heads.width}, {}};
  return {cache("keys", rows), cache("values", rows), cache("seen", {DType::I32, {b, t}, {}})};
}

/// [b, n, room]: each of n tokens behind those in the cache sees these, what is before it, and
/// itself; of all that, what lies in the window.
Value seen_from(Value position, std::int64_t b, std::int64_t n, std::int64_t room,
                std::int64_t window, Where where) {
  Builder& builder = position.builder();
  const Shape shape{b, n, room};
  return seen_by_position(iota(builder, shape, 1, DType::I32, where) + position,
                          iota(builder, shape, 2, DType::I32, where), true, window);
}

/// x [..., d] times a weight for each channel.
Value scaled_channels(Value x, std::string_view name, const TransformerLayer& layer, Where where) {
  const Scope scope(x.builder(), name, where);
  return x * x.builder().state("weight", {DType::F32, {x.shape().back()}, {}}, Role::Parameter,
                               {Init::Kind::Constant, layer.layer_scale}, where);
}

/// Attention to keys and values [b, s, g, e] of the queries' positions, and to those in caches.
Value attended_so_far(Value q, Value k, Value v, std::int64_t d, const TransformerLayer& layer,
                      const Visible& visible, const Pass& pass, Where where) {
  const std::int64_t b = q.shape()[0], s = q.shape()[1];
  if (!pass.position.valid())
    return attended(q, k, v, d, layer, visible, layer.window, pass, where);
  require(visible.causal && !visible.mask.valid() && visible.residual == nullptr, "attention at ",
          where.file, ":", where.line,
          ": with caches it must be causal, without a mask and scores of the layer before");
  k = remembered(k, "keys", pass, where);    // [b, room, g, e]
  v = remembered(v, "values", pass, where);  // [b, room, g, e]
  const Visible before{.causal = false,
                       .mask = seen_from(pass.position, b, s, pass.room, layer.window, where),
                       .bias = visible.bias,
                       .slopes = visible.slopes};  // a number for all keys of a query: no change
  return attended(q, k, v, d, layer, before, 0, pass, where);
}

/// One part of a layer, added to the residual stream. Without a name of the norm, there is none.
template <typename Part>
Value added(Value x, std::string_view norm_name, const TransformerLayer& layer, const Part& part,
            Where where) {
  Value y = part(layer.post_norm || norm_name.empty() ? x : norm(x, norm_name, layer, where));
  if (layer.norm_out) y = norm(y, text(norm_name, "_out"), layer, where);
  if (layer.layer_scale > 0) y = scaled_channels(y, text(norm_name, "_scale"), layer, where);
  y = x + y;
  if (layer.post_norm) y = norm(y, norm_name, layer, where);
  y.builder().set_name(y, "residual");
  return y;
}

Value attention_part(Value x, const TransformerLayer& layer, const Visible& visible,
                     const Pass& pass, Where where) {
  return added(
      x, layer.bare ? "" : "norm1", layer,
      [&](Value y) { return self_attention(y, layer, visible, pass, where); }, where);
}

Value dropped_feed_forward(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const Value y = layer.experts.experts > 0 ? expert_feed_forward(x, layer, pass, where)
                                            : feed_forward(x, layer, pass, where);
  return dropout_layer(y, layer.hidden_dropout, pass.step, "mlp_dropout", where);
}

Value feed_forward_part(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  return added(
      x, "norm2", layer, [&](Value y) { return dropped_feed_forward(y, layer, pass, where); },
      where);
}

/// Both parts read the layer's input.
Value parallel_layer(Value x, const TransformerLayer& layer, const Visible& visible,
                     const Pass& pass, Where where) {
  const Value first = norm(x, "norm1", layer, where);
  const Value second = layer.one_norm ? first : norm(x, "norm2", layer, where);
  const Value attention = self_attention(first, layer, visible, pass, where);
  const Value y = x + attention + dropped_feed_forward(second, layer, pass, where);
  y.builder().set_name(y, "residual");
  return y;
}

}  // namespace

std::span<const TensorCut> transformer_cuts() { return kCuts; }

Value attention_mask(Value input_mask, Where where) {
  Builder& builder = input_mask.builder();
  const Shape shape = input_mask.shape();
  require(shape.ndim() == 2, "attention_mask at ", where.file, ":", where.line,
          ": the input mask is ", shape, "; it must be [batch, sequence]");
  const std::int64_t b = shape[0], s = shape[1];
  const Value token = input_mask.dtype() == DType::Bool
                          ? input_mask
                          : not_equal(input_mask, builder.constant(0, input_mask.dtype()));
  const Value before = less_equal(iota(builder, {s, s}, 1, DType::I32, where),
                                  iota(builder, {s, s}, 0, DType::I32, where));  // [s, s]
  return logical_and(logical_and(reshape(token, {b, s, 1}), reshape(token, {b, 1, s})), before);
}

Value norm(Value x, std::string_view name, const TransformerLayer& layer, Where where) {
  if (layer.norm == NormKind::Layer)
    return layer_norm_layer(x, name, layer.norm_eps, layer.bias || layer.norm_bias, where);
  const RmsWeight weight = layer.norm == NormKind::Rms ? RmsWeight::Whole : RmsWeight::PlusOne;
  return rms_norm_layer(x, name, layer.norm_eps, weight, where);
}

Value self_attention(Value x, const TransformerLayer& layer, const Visible& visible,
                     const Pass& pass, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, "attn", where);
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = x.shape().back();
  const auto [g, r, e] = heads_of(d, layer, where);
  std::vector<Value> read = {x};
  const Value rows = visible.distances.rows;
  if (rows.valid())
    read.push_back(dropout_layer(rows, layer.hidden_dropout, pass.step, "distance_dropout", where));
  const std::vector<Value> qkv =
      lora_linear(read, "qkv", g * (r + 2) * e, of_attention(layer), layer.lora,
                  joined_rows("qkv", r, e), pass.step, where);  // [b, s, ...]
  const Value split = reshape(qkv[0], {b, s, g, r + 2, e});     // r queries, a key and a value
  builder.set_name(split, "qkv_heads");
  Value q = slice(split, 3, 0, r);                               // [b, s, g, r, e]
  Value k = reshape(slice(split, 3, r, 1), {b, s, g, e});        // [b, s, g, e]
  Value v = reshape(slice(split, 3, r + 1, 1), {b, s, g, e});    // [b, s, g, e]
  const auto normed = [&](Value heads, std::string_view name) {  // [b, s, ..., e]
    if (!layer.norm_together) return norm(heads, name, layer, where);
    return reshape(norm(reshape(heads, {b, s, -1}), name, layer, where), heads.shape());
  };
  if (layer.head_norm || layer.norm_together) q = normed(q, "q_norm"), k = normed(k, "k_norm");
  if (layer.rotary) {
    Value positions = iota(builder, {b, s}, 1, DType::I32, where);
    if (pass.position.valid()) positions = positions + pass.position;  // [b, s]
    // Keys in caches are not turned again when the text grows: its rates are those of the longest.
    const RotaryRates rates = rotary_rates(layer.rope, e, pass.position.valid() ? pass.context : s);
    q = rope(q, positions, rates, false, where);
    k = rope(k, positions, rates, false, where);
  }
  if (rows.valid()) {
    require(!pass.position.valid() && !visible.bias.valid(), "attention at ", where.file, ":",
            where.line, ": with rows of distances it has neither caches nor a bias");
    Visible with = visible;
    with.bias = distance_scores(q, k, reshape(qkv[1], {rows.shape()[0], g, r + 2, e}),
                                visible.distances.kinds, scale_of(layer, e), where);
    return attended(q, k, v, d, layer, with, layer.window, pass, where);
  }
  return attended_so_far(q, k, v, d, layer, visible, pass, where);
}

Value query_attention(Value queries, Value x, const TransformerLayer& layer, const Visible& visible,
                      const Pass& pass, Where where) {
  const Scope scope(x.builder(), "cross", where);
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = x.shape().back();
  const Heads heads = heads_of(d, layer, where);
  const auto [g, r, e] = heads;
  const Value q =
      reshape(layer_linear(queries, "q", g * r * e, of_attention(layer), layer, pass, where),
              {b, s, g, r, e});
  q.builder().set_name(q, "q_heads");
  const auto [k, v] = encoded_keys(x, heads, layer, pass, where);  // [b, s, g, e] each
  return attended_so_far(q, k, v, d, layer, visible, pass, where);
}

Value cross_attention(Value x, const Encoded& encoded, const TransformerLayer& layer,
                      const Pass& pass, Where where) {
  const Scope scope(x.builder(), "cross", where);
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = x.shape().back();
  const Heads heads = heads_of(d, layer, where);
  const auto [g, r, e] = heads;
  const Value q = reshape(layer_linear(x, "q", g * r * e, of_attention(layer), layer, pass, where),
                          {b, s, g, r, e});
  q.builder().set_name(q, "q_heads");
  if (encoded.kept == 0) {
    const auto [k, v] =
        encoded_keys(encoded.values, heads, layer, pass, where);  // [b, t, g, e] each
    return attended(q, k, v, d, layer, encoded.visible, 0, pass, where);
  }
  const CrossCaches kept = cross_caches(x.builder(), b, encoded.kept, heads, x.dtype(), where);
  const Value zero = x.builder().constant(0, DType::I32, where);
  return attended(q, kept.keys, kept.values, d, layer, {.mask = not_equal(kept.seen, zero)}, 0,
                  pass, where);
}

void keep_encoded(const Encoded& encoded, std::int64_t width, const TransformerLayer& layer,
                  Where where) {
  Builder& builder = encoded.values.builder();
  const Scope scope(builder, "cross", where);
  const Heads heads = heads_of(width, layer, where);
  const std::int64_t b = encoded.values.shape()[0], t = encoded.values.shape()[1];
  const auto [k, v] = encoded_keys(encoded.values, heads, layer, {}, where);  // [b, t, g, e] each
  const CrossCaches kept = cross_caches(builder, b, t, heads, encoded.values.dtype(), where);
  builder.next(kept.keys, k);
  builder.next(kept.values, v);
  const Value mask = encoded.visible.mask;
  require(!mask.valid() || mask.shape() == Shape{b, t}, "caches of what an encoder made, at ",
          where.file, ":", where.line, ": the mask is ", mask.valid() ? mask.type() : TensorType{},
          "; it must be [", b, ",", t, "], as one mask of all queries is kept");
  // Written into the old value, so that it is computed where the cache lies: a mask alone depends
  // on no parameter, and belongs to no stage.
  const Value one = builder.constant(1, DType::I32, where);
  const Value seen = mask.valid() ? cast(mask, DType::I32) : broadcast_to(one, {b, t});  // [b, t]
  builder.next(kept.seen,
               dynamic_update(kept.seen, seen, 1, builder.constant(0, DType::I32), where));
}

Value feed_forward(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const Scope scope(x.builder(), "mlp", where);
  return feed_forward_of(x, layer, pass, where);
}

Value feed_forward_of(Value x, const TransformerLayer& layer, const Pass& pass, Where where) {
  const std::int64_t width = x.shape().back(),
                     hidden = layer.ffn_width == 0 ? 4 * width : layer.ffn_width;
  const bool bias = layer.bias || layer.ffn_bias;
  const LinearOptions wide{bias, layer.init}, down{bias, layer.residual_init};
  const auto widened = [&](std::string_view name) {  // [b, s, d] -> [b, s, h]
    return layer_linear(x, name, hidden, wide, layer, pass, where);
  };
  const Value y = dropout_layer(activated(layer.feed_forward, widened), layer.activation_dropout,
                                pass.step, "activation_dropout", where);
  return layer_linear(y, "down", width, down, layer, pass, where);  // [b, s, h] -> [b, s, d]
}

Value encoder_layer(Value x, const TransformerLayer& layer, const Visible& visible,
                    const Pass& pass, Where where) {
  if (layer.parallel) return parallel_layer(x, layer, visible, pass, where);
  return feed_forward_part(attention_part(x, layer, visible, pass, where), layer, pass, where);
}

Value query_layer(Value queries, Value x, const TransformerLayer& layer, const Visible& visible,
                  const Pass& pass, Where where) {
  const auto f = [&](Value y) { return query_attention(queries, y, layer, visible, pass, where); };
  return feed_forward_part(added(x, "norm1", layer, f, where), layer, pass, where);
}

Value decoder_layer(Value x, const Encoded& encoded, const TransformerLayer& layer,
                    const Visible& visible, const Pass& pass, Where where) {
  x = attention_part(x, layer, visible, pass, where);
  x = added(
      x, "norm_cross", layer,
      [&](Value y) { return cross_attention(y, encoded, layer, pass, where); }, where);
  return feed_forward_part(x, layer, pass, where);
}

}  // namespace tessera
