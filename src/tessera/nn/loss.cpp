#include "tessera/nn/loss.h"

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

/// 1 where the label counts, else 0.
Value counted_labels(Value labels) {
  return cast(not_equal(labels, labels.builder().constant(kIgnoredLabel, labels.dtype())),
              DType::F32);
}

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

Value counted_numbers(Value labels) {
  return cast(not_equal(labels, labels.builder().constant(kIgnoredNumber, labels.dtype())),
              DType::F32);
}

Value squared_error(Value x, Value y) {
  const Value difference = x - y;
  return difference * difference;
}

Value binary_cross_entropy(Value logits, Value labels) {
  // Slopes at 0 are those of the formula: neither relu nor abs has them.
  const Value negative = less(logits, logits.builder().constant(0.0, logits.dtype()));
  const Value above = select(negative, logits * 0.0, logits),
              away = select(negative, logits, -logits);
  return above - logits * labels + log(exp(away) + 1.0);
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

Mean accuracy(Value logits, Value labels) {
  const Scope scope(logits.builder(), "accuracy");
  const Value counted = counted_labels(labels);
  const Value right =
      cast(less_equal(max(logits, -1), pick(logits, labels)), DType::F32);  // [b, s]
  return {sum_all(right * counted), sum_all(counted)};
}

}  // namespace tessera
