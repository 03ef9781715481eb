#include "tessera/nn/transformer.h"

#include "tessera/base/text.h"
#include "tessera/nn/activated.h"
#include "tessera/nn/attention/attended.h"
#include "tessera/nn/experts.h"
#include "tessera/nn/tensor_cuts.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/shape_ops.h"

// Shapes below: b batch, s context, d width, h hidden width of feed-forward.
namespace tessera {

namespace {

constexpr TensorCut kCuts[] = {
    {"*.attn.qkv.weight", 0, 2},
    {"*.attn.qkv.bias", 0, 1},
    {"*.attn.q.weight", 0, 2},
    {"*.attn.q_b.weight", 0, 2},
    {"*.attn.kv_b.weight", 0, 2},
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
    {"*.attn.q.lora_b", 0, 2},
    {"*.attn.q_b.lora_b", 0, 2},
    {"*.attn.kv_b.lora_b", 0, 2},
    {"*.attn.proj.lora_a", 1, 2},
    {"*.cross.q.lora_b", 0, 2},
    {"*.cross.kv*.lora_b", 0, 2},
    {"*.cross.proj.lora_a", 1, 2},
    {"*.mlp.up.lora_b", 0, 2},
    {"*.mlp.gate.lora_b", 0, 2},
    {"*.mlp.down.lora_a", 1, 2},
};

/// x [..., d] times a weight for each channel.
Value scaled_channels(Value x, std::string_view name, const TransformerLayer& layer, Where where) {
  const Scope scope(x.builder(), name, where);
  return x * x.builder().state("weight", {DType::F32, {x.shape().back()}, {}}, Role::Parameter,
                               {Init::Kind::Constant, layer.layer_scale}, where);
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
