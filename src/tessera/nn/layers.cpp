#include "tessera/nn/layers.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/norm.h"
#include "tessera/ops/random.h"
#include "tessera/ops/shape_ops.h"

// Shapes below: b batch, s context, d width, v rows of a table.
namespace tessera {

namespace {

Value parameter(Builder& builder, std::string_view name, const Shape& shape,
                const WeightInit& init) {
  return builder.state(name, {DType::F32, shape, {}}, Role::Parameter, init.of(shape));
}

/// The least distance of each kind but the first of those that share a number.
std::vector<std::int64_t> far_kinds(std::int64_t kinds, std::int64_t far_distance) {
  const std::int64_t near = kinds / 2, far = kinds - near;
  const double all = static_cast<double>(far_distance) / static_cast<double>(near);
  std::vector<std::int64_t> out;
  for (std::int64_t i = 1; i < far; ++i) {
    const double begin = static_cast<double>(near) *
                         std::pow(all, static_cast<double>(i) / static_cast<double>(far));
    out.push_back(static_cast<std::int64_t>(std::ceil(begin - 1e-9)));  // powers may be whole
  }
  return out;
}

/// The least distance of each kind of log_distance_kinds beyond those that have one of their own.
std::vector<std::int64_t> log_kinds(DistanceKinds of) {
  const std::int64_t near = of.count / 2;
  const auto middle = static_cast<float>(near);
  const float all =
      std::log(static_cast<float>(static_cast<double>(of.far - 1) / static_cast<double>(near)));
  std::vector<std::int64_t> out;
  for (std::int64_t distance = near + 1; std::ssize(out) < of.count - near; ++distance) {
    const float share = std::log(static_cast<float>(distance) / middle) / all;
    const auto kind = static_cast<std::int64_t>(std::ceil(share * (middle - 1)));
    while (std::ssize(out) < std::min(kind, of.count - near)) out.push_back(distance);
  }
  return out;
}

}  // namespace

Value linear(Value x, std::string_view name, std::int64_t out, LinearOptions options, Where where) {
  return linear(std::vector<Value>{x}, name, out, options, where)[0];
}

std::vector<Value> linear(const std::vector<Value>& xs, std::string_view name, std::int64_t out,
                          LinearOptions options, Where where) {
  Builder& builder = xs[0].builder();
  const Scope scope(builder, name, where);
  const Value weight = parameter(builder, "weight", {out, xs[0].shape().back()}, options.init);
  std::vector<Value> ys;
  for (const Value x : xs)  // [..., in] -> [..., out]
    ys.push_back(matmul(x, weight, {.trans_b = true}, where));
  if (!options.bias) return ys;
  const Value bias = parameter(builder, "bias", {out}, options.bias_init);
  for (Value& y : ys) y = y + bias;
  return ys;
}

EmbeddingResult embedding(Value ids, std::string_view name, std::int64_t rows, std::int64_t width,
                          const WeightInit& init, Where where) {
  Builder& builder = ids.builder();
  const Scope scope(builder, name, where);
  const Value weight = parameter(builder, "weight", {rows, width}, init);
  return {gather(ids, weight, where), weight};  // [b, s] -> [b, s, d], [v, d]
}

Value learned_positions(Value x, std::string_view name, std::int64_t context,
                        const WeightInit& init, Value first, Value at, std::int64_t unread,
                        Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  const std::int64_t length = x.shape()[1];
  require(length <= context, "learned positions: the sequence has ", length,
          " positions, the model's context is ", context,
          "; raise the context or shorten the sequence");
  const Value weight = parameter(builder, "weight", {unread + context, x.shape().back()}, init);
  const auto row = [&](Value position) {
    return unread == 0 ? position : position + builder.constant(double(unread), DType::I32);
  };
  if (at.valid()) return x + gather(row(at), weight, where);  // [b, s, d] + [b, s, d]
  if (first.valid())
    return x + gather(row(iota(builder, {length}, 0, DType::I32, where) + first), weight, where);
  return x + (length == unread + context ? weight : slice(weight, 0, unread, length, where));
}

Value sinusoidal_positions(Value x, Value first, double base, Where where) {
  Builder& builder = x.builder();
  const std::int64_t length = x.shape()[1], width = x.shape().back();
  require(width % 2 == 0, "sinusoidal positions: width ", width, " is odd; choose an even width");
  const Shape half{length, width / 2};
  Value position = iota(builder, half, 0, DType::F32, where);  // [s, d / 2]
  if (first.valid()) position = position + cast(first, DType::F32);
  const Value channel = iota(builder, half, 1, DType::F32, where);
  const Value angle =
      position * exp(channel * (-2.0 * std::log(base) / static_cast<double>(width)));
  constexpr double kQuarterTurn = 1.5707963267948966;                    // sin(a) = cos(a - pi/2)
  return x + concat({cos(angle - kQuarterTurn), cos(angle)}, 1, where);  // [b, s, d] + [s, d]
}

Value relative_bias(Builder& builder, std::string_view name, std::int64_t heads,
                    std::int64_t queries, std::int64_t keys, Distances distances,
                    const WeightInit& init, Value first, DistanceKinds of, Where where) {
  const Scope scope(builder, name, where);
  const bool both = distances == Distances::Both;
  const std::int64_t kinds = both ? of.count / 2 : of.count;  // of one side
  const Shape shape{queries, keys};
  Value query = iota(builder, shape, 0, DType::I32, where);
  if (first.valid()) query = query + first;
  const Value before = query - iota(builder, shape, 1, DType::I32, where);  // [queries, keys]
  const auto number = [&](std::int64_t value) {
    return builder.constant(static_cast<double>(value), DType::I32, where);
  };
  const Value distance = both ? abs(before) : maximum(before, number(0));
  Value kind = minimum(distance, number(kinds / 2));
  for (const std::int64_t begin : far_kinds(kinds, of.far))
    kind = kind + cast(less_equal(number(begin), distance), DType::I32);
  if (both) kind = kind + cast(less(before, number(0)), DType::I32) * number(kinds);
  const Value table = parameter(builder, "weight", {of.count, heads}, init);
  return transpose(gather(kind, table, where), {2, 0, 1}, where);  // [heads, queries, keys]
}

Value log_distance_kinds(Builder& builder, std::int64_t queries, std::int64_t keys,
                         DistanceKinds of, Where where) {
  const auto number = [&](std::int64_t value) {
    return builder.constant(static_cast<double>(value), DType::I32, where);
  };
  // Of each distance once: query - key, from 1 - keys to queries - 1.
  const Value ahead = iota(builder, {queries + keys - 1}, 0, DType::I32, where) - number(keys - 1);
  const Value distance = abs(ahead);
  Value kind = minimum(distance, number(of.count / 2));
  for (const std::int64_t begin : log_kinds(of))
    kind = kind + cast(less_equal(number(begin), distance), DType::I32);
  kind = select(less(ahead, number(0)), number(of.count) - kind, number(of.count) + kind);
  kind = minimum(kind, number(2 * of.count - 1));
  const Shape pairs{queries, keys};
  return gather(iota(builder, pairs, 0, DType::I32, where) -
                    iota(builder, pairs, 1, DType::I32, where) + number(keys - 1),
                kind, where);
}

Value alibi_slopes(Builder& builder, std::int64_t groups, std::int64_t per_group, Where where) {
  const auto heads = static_cast<std::uint64_t>(groups * per_group);
  const auto power = static_cast<double>(std::bit_floor(heads));
  const Value number = iota(builder, {groups * per_group}, 0, DType::I32, where);
  const Value h = cast(number, DType::F32);  // from 0
  const Value first = (h + 1) * (-8 / power), more = (h * 2 + (1 - 2 * power)) * (-4 / power);
  const Value is_first = less(number, builder.constant(power, DType::I32, where));
  const Value out = exp(select(is_first, first, more) * std::numbers::ln2);
  return reshape(out, {groups, per_group}, where);
}

Value layer_norm_layer(Value x, std::string_view name, double eps, bool bias, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  const Shape shape{x.shape().back()};
  const Value weight = parameter(builder, "weight", shape, ones_init());
  return layer_norm(x, weight, bias ? parameter(builder, "bias", shape, zeros_init()) : Value(),
                    eps, where)
      .y;
}

Value rms_norm_layer(Value x, std::string_view name, double eps, RmsWeight kind, Where where) {
  Builder& builder = x.builder();
  const Scope scope(builder, name, where);
  const bool whole = kind == RmsWeight::Whole;
  const Value weight =
      parameter(builder, "weight", {x.shape().back()}, whole ? ones_init() : zeros_init());
  return rms_norm(x, whole ? weight : weight + 1, eps, where).y;
}

Value dropout_layer(Value x, double p, Value step, std::string_view name, Where where) {
  return step.valid() && p > 0 ? dropout(x, step, p, name, where) : x;
}

}  // namespace tessera
