#include "tessera/nn/attention/attended.h"
#include "tessera/nn/attention/held_scores.h"
#include "tessera/nn/attention/latent.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/shape_ops.h"

// Shapes below: as in attended.h.
namespace tessera {

Value self_attention(Value x, const TransformerLayer& layer, const Visible& visible,
                     const Pass& pass, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, "attn", where);
  if (layer.latent.kv_rank > 0) return latent_attention(x, layer, visible, pass, where);
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
    const Value positions = run_positions(x, pass, where);
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

}  // namespace tessera
