#include "tessera/nn/attention/attended.h"

#include "tessera/nn/attention/held_scores.h"
#include "tessera/nn/attention/sinks.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/dynamic_update.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

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

/// [b, n, room]: each of n tokens behind those in the cache sees these, what is before it, and
/// itself; of all that, what lies in the window.
Value seen_from(Value position, std::int64_t b, std::int64_t n, std::int64_t room,
                std::int64_t window, Where where) {
  Builder& builder = position.builder();
  const Shape shape{b, n, room};
  return seen_by_position(iota(builder, shape, 1, DType::I32, where) + position,
                          iota(builder, shape, 2, DType::I32, where), true, window);
}

}  // namespace

Heads heads_of(std::int64_t width, const TransformerLayer& layer, Where where) {
  const bool whole = layer.heads > 0 && (layer.head_width > 0 || width % layer.heads == 0);
  require(whole && layer.heads % layer.groups() == 0, "attention at ", where.file, ":", where.line,
          ": ", layer.heads, " heads over a width of ", width, " and ", layer.groups(),
          " key-value heads; heads must divide the width, and key-value heads the heads");
  return {layer.groups(), layer.heads / layer.groups(),
          layer.head_width > 0 ? layer.head_width : width / layer.heads};
}

Value layer_linear(Value x, std::string_view name, std::int64_t out, const LinearOptions& options,
                   const TransformerLayer& layer, const Pass& pass, Where where,
                   const std::vector<RowPart>& parts) {
  return lora_linear({x}, name, out, options, layer.lora, parts, pass.step, where)[0];
}

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
  if (layer.latent.kv_rank > 0) y = slice(y, 4, 0, layer.latent.value_width, where);
  const Shape& shape = y.shape();
  const Value rows = reshape(y, {shape[0], shape[1], shape[2] * shape[3] * shape[4]});
  rows.builder().set_name(rows, "of_heads");
  const Value out =
      layer_linear(rows, "proj", width, {layer.bias || layer.proj_bias, layer.residual_init}, layer,
                   pass, where);  // [b, s, g r e] -> [b, s, d]
  return dropout_layer(out, layer.hidden_dropout, pass.step, "residual_dropout", where);
}

LinearOptions of_attention(const TransformerLayer& layer) {
  return {layer.bias || layer.qkv_bias, layer.attention_init.value_or(layer.init)};
}

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

Value run_positions(Value x, const Pass& pass, Where where) {
  const Value out =
      iota(x.builder(), {x.shape()[0], x.shape()[1]}, 1, DType::I32, where);  // [b, s]
  return pass.position.valid() ? out + pass.position : out;
}

}  // namespace tessera
