#include "tessera/nn/loss.h"

#include "tessera/nn/in_f32.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

Value constant_like(Value x, double number) { return x.builder().constant(number, x.dtype()); }

}  // namespace

Value Mean::value() const {
  const Scope scope(sum.builder(), "loss");
  constexpr double kAlmostNone = 1e-30;  // where nothing counts, the sum is 0 as well
  return sum / maximum(count, count.builder().constant(kAlmostNone, DType::F32));
}

Mean masked_mean(Value losses, Value mask) {
  const Scope scope(losses.builder(), "loss");
  return {sum_all(losses * mask), sum_all(mask)};  // [b, ...] -> scalars
}

Mean mean_of(Value losses) {
  const Scope scope(losses.builder(), "loss");
  return {sum_all(losses),
          losses.builder().constant(static_cast<double>(losses.shape().numel()), DType::F32)};
}

Value counted_labels(Value labels) {
  const double ignored = is_float(labels.dtype()) ? kIgnoredNumber : kIgnoredLabel;
  return cast(not_equal(labels, constant_like(labels, ignored)), DType::F32);
}

Value squared_error(Value x, Value y) {
  const Value difference = in_f32(x) - in_f32(y);
  return difference * difference;
}

Value huber(Value x, Value y, double delta) {
  require(delta > 0, "huber: delta is ", delta, "; it must be greater than 0");
  const Value distance = abs(in_f32(x) - in_f32(y)),
              near = minimum(distance, constant_like(distance, delta));
  return near * near * 0.5 + (distance - near) * delta;
}

Value smooth_l1(Value x, Value y, double beta) {
  require(beta >= 0, "smooth_l1: beta is ", beta, "; it must be at least 0");
  return beta == 0 ? abs(in_f32(x) - in_f32(y)) : huber(x, y, beta) / beta;
}

Value binary_cross_entropy(Value logits, Value labels) {
  // Slopes at 0 are those of the formula: neither relu nor abs has them.
  const Value x = in_f32(logits), negative = less(x, constant_like(x, 0));
  const Value above = select(negative, x * 0.0, x), away = select(negative, x, -x);
  return above - x * in_f32(labels) + log(exp(away) + 1.0);
}

Value preference_loss(Value margins, double smoothing) {
  require(smoothing >= 0 && smoothing <= 1, "preference_loss: smoothing is ", smoothing,
          "; it must be from 0 to 1");
  return binary_cross_entropy(margins, constant_like(margins, 1 - smoothing));
}

Value smoothed_cross_entropy(Value logits, Value labels, double smoothing) {
  require(smoothing >= 0 && smoothing <= 1, "smoothed_cross_entropy: smoothing is ", smoothing,
          "; it must be from 0 to 1");
  const Value losses = cross_entropy(logits, labels, kIgnoredLabel).loss;
  if (smoothing == 0) return losses;
  // The mean of the losses of all classes is that of the label, plus how far its logit is above the
  // mean of all.
  const Value above =
      in_f32(pick(logits, labels)) - in_f32(mean(logits, {logits.shape().ndim() - 1}));
  return losses + above * smoothing * counted_labels(labels);
}

Value focal(Value logits, Value labels, double gamma) {
  require(gamma >= 0, "focal: gamma is ", gamma, "; it must be at least 0");
  constexpr double kAlmostNone = 1e-12;  // a power of 0 has no slope
  const Value losses = cross_entropy(logits, labels, kIgnoredLabel).loss,
              missing = maximum(1.0 - exp(-losses), constant_like(losses, kAlmostNone));
  return power(missing, constant_like(losses, gamma)) * losses;
}

Mean cross_entropy_mean(Value logits, Value labels) {
  const Scope scope(logits.builder(), "loss");
  const Value count = sum_all(counted_labels(labels));                         // [b, s] -> a scalar
  return {sum_all(cross_entropy(logits, labels, kIgnoredLabel).loss), count};  // of [b, s, v]
}

Mean cross_entropy_mean(Value logits, Value labels, Value mask) {
  require(mask.shape() == labels.shape(), "cross entropy: the mask is ", mask.shape(),
          " and the labels are ", labels.shape(), "; give a weight for each label");
  const Scope scope(logits.builder(), "loss");
  const Value weights =
      (mask.dtype() == DType::F32 ? mask : cast(mask, DType::F32)) * counted_labels(labels);
  return {sum_all(cross_entropy(logits, labels, kIgnoredLabel).loss * weights), sum_all(weights)};
}

Value unit_rows(Value x) {
  constexpr double kAlmostNone = 1e-12;
  const Value rows = in_f32(x), squares = sum(rows * rows, -1, KeepDim::Yes);
  return rows * rsqrt(maximum(squares, constant_like(squares, kAlmostNone * kAlmostNone)));
}

Value similarity_logits(Value anchors, const std::vector<Value>& candidates, double scale) {
  const Scope scope(anchors.builder(), "loss");
  std::vector<Value> rows;
  for (const Value& each : candidates) rows.push_back(whole_batch(unit_rows(each)));
  const Value all = rows.size() == 1 ? rows[0] : concat(rows, 0);
  // The cosines are not rounded to 16 bits: near 1, bf16 has one in 256.
  const Value cosines = anchors.builder().add(kMatmul, {whole_batch(unit_rows(anchors)), all},
                                              {"b k, n k -> b n", DType::F32});
  return cosines * scale;
}

Mean accuracy(Value logits, Value labels) {
  const Scope scope(logits.builder(), "accuracy");
  const Value counted = counted_labels(labels);
  const Value right =
      cast(less_equal(max(logits, -1), pick(logits, labels)), DType::F32);  // [b, s]
  return {sum_all(right * counted), sum_all(counted)};
}

}  // namespace tessera
