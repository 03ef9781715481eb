#pragma once
/// Losses over a whole training step.

#include "tessera/ir/builder.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

/// A mean over what counts in a step. Sum and count are taken over the whole step, so the mean does
/// not depend on how the batch is split into devices and micro-batches, nor on how many of each
/// part count.
struct Mean {
  Value sum, count;  // f32 scalars
  /// sum / count; 0 where nothing counts.
  Value value() const;
};

/// The mean of `losses` [...] where `mask` [...] (f32; 0 or 1, or any weight from 0 on) says so:
/// sum(losses * mask) / sum(mask).
Mean masked_mean(Value losses, Value mask);

/// 1 where labels [...] of f32 are no kIgnoredNumber, else 0: a mask for masked_mean.
Value counted_numbers(Value labels);

/// (x - y)^2: masked_mean of it is torch's MSELoss.
Value squared_error(Value x, Value y);

/// -(labels log s + (1 - labels) log(1 - s)), s = sigmoid(logits), without a sigmoid: a large logit
/// does not become infinite. Mean: torch's BCEWithLogitsLoss. Labels are f32 from 0 to 1.
Value binary_cross_entropy(Value logits, Value labels);

/// Mean cross-entropy of predicted classes. A label of kIgnoredLabel does not count. With a `mask`
/// it is sum(loss * mask) / sum(mask), where both sums are over the labels that count, of the whole
/// step: MindSpore's CrossEntropyLoss, but for the 1e-5 that it adds to sum(mask). If the logits
/// are split along v, no rank gathers them: each row exchanges its maximum, a sum and one logit.
/// Shapes: logits [..., v] f32; labels [...] i32; mask [...] of f32, i32 or bool, from 0 on.
Mean cross_entropy_mean(Value logits, Value labels);
Mean cross_entropy_mean(Value logits, Value labels, Value mask);

/// The share of rows whose largest logit is that of the label. Shapes and labels as above.
Mean accuracy(Value logits, Value labels);

}  // namespace tessera
