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
