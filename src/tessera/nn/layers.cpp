#include "tessera/nn/layers.h"

#include <cmath>

#include "tessera/ops/attention.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"

namespace tessera {

namespace {

Value parameter(Builder& builder, std::string_view name, Shape shape, Init init) {
  return builder.state(name, {DType::F32, shape, {}}, Role::Parameter, init);
}

constexpr Init ones() { return {Init::Kind::Constant, 1.0}; }
constexpr Init zeros() { return {Init::Kind::Constant, 0.0}; }
constexpr Init normal(double std) { return {Init::Kind::Normal, std}; }

/// Layers whose result is added to the residual stream start smaller, so that its variance does not
/// grow with depth.
double residual_std(const ModelConfig& config) {
  return config.init_std / std::sqrt(2.0 * static_cast<double>(config.layers));
}

}  // namespace

Value linear(Value x, std::string_view name, std::int64_t out, LinearOptions options, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  const Value weight =
      parameter(builder, "weight", {out, x.shape().back()}, normal(options.init_std));
  const Value y = matmul(x, weight, {.trans_b = true}, where);
  return options.bias ? y + parameter(builder, "bias", {out}, zeros()) : y;
}

EmbeddingResult embedding(Value ids, std::string_view name, std::int64_t rows, std::int64_t width,
                          double init_std, Where where) {
  Builder& builder = ids.builder();
  const Scope scope(builder, name, where);
  const Value weight = parameter(builder, "weight", {rows, width}, normal(init_std));
  return {gather(ids, weight, where), weight};
}

Value learned_positions(Value x, std::string_view name, std::int64_t context, double init_std,
                        Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  const std::int64_t length = x.shape()[1];
  require(length <= context, "learned positions: the sequence has ", length,
          " positions, the model's context is ", context,
          "; raise the context or shorten the sequence");
  const Value weight = parameter(builder, "weight", {context, x.shape().back()}, normal(init_std));
  return x + (length == context ? weight : slice(weight, 0, 0, length, where));
}

Value sinusoidal_positions(Value x, double base, Where where) {
  Builder& builder = x.builder();
  const std::int64_t length = x.shape()[1], width = x.shape().back();
  require(width % 2 == 0, "sinusoidal positions: width ", width, " is odd; choose an even width");
  const Shape half{length, width / 2};
  const Value position = iota(builder, half, 0, DType::F32, where),
              channel = iota(builder, half, 1, DType::F32, where);
  const Value angle =
      position * exp(channel * (-2.0 * std::log(base) / static_cast<double>(width)));
  constexpr double kQuarterTurn = 1.5707963267948966;  // sin(a) = cos(a - pi/2)
  return x + concat({cos(angle - kQuarterTurn), cos(angle)}, 1, where);
}

Value layer_norm_layer(Value x, std::string_view name, double eps, bool bias, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  const Shape shape{x.shape().back()};
  const Value weight = parameter(builder, "weight", shape, ones());
  return layer_norm(x, weight, bias ? parameter(builder, "bias", shape, zeros()) : Value(), eps,
                    where)
      .y;
}

Value rms_norm_layer(Value x, std::string_view name, double eps, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  return rms_norm(x, parameter(builder, "weight", {x.shape().back()}, ones()), eps, where).y;
}

Value multi_head_attention(Value x, const ModelConfig& config, bool rotary, Value step,
                           Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, "attn", where);
  const std::int64_t b = x.shape()[0], s = x.shape()[1], g = config.groups(), r = config.heads / g,
                     e = config.head_dim();
  const Value qkv = linear(x, "qkv", g * (r + 2) * e, {config.bias, config.init_std}, where);
  const Value split = reshape(qkv, {b, s, g, r + 2, e});
  Value q = slice(split, 3, 0, r);                         // [b, s, g, r, e]
  Value k = reshape(slice(split, 3, r, 1), {b, s, g, e});  // [b, s, g, e]
  const Value v = reshape(slice(split, 3, r + 1, 1), {b, s, g, e});
  if (rotary) {
    const Value positions = iota(builder, {b, s}, 1, DType::I32, where);
    q = rope(q, positions, config.rope_base, false, where);
    k = rope(k, positions, config.rope_base, false, where);
  }
  AttentionOptions options;
  const bool drop = step.valid() && config.dropout > 0;
  if (drop) options.dropout = config.dropout;
  const Value y = attention(q, k, v, {}, drop ? step : Value(), options, where).y;
  const Value out = linear(reshape(y, {b, s, config.width}), "proj", config.width,
                           {config.bias, residual_std(config)}, where);
  return dropout_layer(out, config, step, "residual_dropout", where);
}

Value feed_forward(Value x, const ModelConfig& config, FeedForward kind, Where where) {
  const Scope scope(x.builder(), "mlp", where);
  const LinearOptions wide{config.bias, config.init_std}, down{config.bias, residual_std(config)};
  Value hidden;
  if (kind == FeedForward::Gelu) {
    hidden = gelu(linear(x, "up", config.hidden(), wide, where), GeluForm::Tanh);
  } else {
    const Value gate = linear(x, "gate", config.hidden(), wide, where);
    hidden = silu(gate) * linear(x, "up", config.hidden(), wide, where);
  }
  return linear(hidden, "down", config.width, down, where);
}

Value dropout_layer(Value x, const ModelConfig& config, Value step, std::string_view name,
                    Where where) {
  return step.valid() && config.dropout > 0 ? dropout(x, step, config.dropout, name, where) : x;
}

}  // namespace tessera
