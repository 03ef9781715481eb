#pragma once
/// Losses over a whole training step.

#include <vector>

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

/// The mean of all elements of `losses`.
Mean mean_of(Value losses);

/// 1 where labels [...] of i32 are no kIgnoredLabel, and those of f32 no kIgnoredNumber, else 0: a
/// mask for masked_mean.
Value counted_labels(Value labels);

// Losses of each element, or of each row; their mean_of is the loss of torch with that name.
// Operands are f32.

/// (x - y)^2: MSELoss.
Value squared_error(Value x, Value y);

/// With d = |x - y|: d^2 / 2 up to `delta`, else delta (d - delta / 2): HuberLoss. delta > 0.
Value huber(Value x, Value y, double delta = 1);
/// The same over beta, and d where that is 0: SmoothL1Loss.
Value smooth_l1(Value x, Value y, double beta = 1);

/// -(labels log s + (1 - labels) log(1 - s)), s = sigmoid(logits), without a sigmoid: a large logit
/// does not become infinite: BCEWithLogitsLoss. Labels are from 0 to 1.
Value binary_cross_entropy(Value logits, Value labels);

/// -log sigmoid(margins), of which the share `smoothing` is of the opposite margins. Source: Rafailov
/// et al. 2023, arXiv 2305.18290; smoothing as TRL's.
Value preference_loss(Value margins, double smoothing = 0);

/// Cross-entropies of which the share `smoothing` is spread evenly over all classes: torch's
/// label_smoothing. 0 at labels that are kIgnoredLabel: masked_mean with counted_labels is torch's
/// mean. Shapes: logits [..., v]; labels [...] i32; losses [...].
Value smoothed_cross_entropy(Value logits, Value labels, double smoothing);

/// (1 - p)^gamma times the cross-entropy, where p is the probability of the label; otherwise as
/// above. Source: Lin et al. 2017, arXiv 1708.02002.
Value focal(Value logits, Value labels, double gamma = 2);

/// Mean cross-entropy of predicted classes. A label of kIgnoredLabel does not count. With a `mask`
/// it is sum(loss * mask) / sum(mask), where both sums are over the labels that count, of the whole
/// step: MindSpore's CrossEntropyLoss, but for the 1e-5 that it adds to sum(mask). If the logits
/// are split along v, no rank gathers them: each row exchanges its maximum, a sum and one logit.
/// Shapes: logits [..., v] f32; labels [...] i32; mask [...] of f32, i32 or bool, from 0 on.
Mean cross_entropy_mean(Value logits, Value labels);
Mean cross_entropy_mean(Value logits, Value labels, Value mask);

/// x [..., d] over the length of each row, or 1e-12 where that is less: torch's normalize.
Value unit_rows(Value x);

/// Logits of a choice among the samples of a batch: scale x the cosines between anchors [b, d] and
/// candidates, which are some [b, d], one below the other: [b, n b]. All samples of the batch are
/// candidates, also where it is run in micro-batches (ops/elementwise.h: whole_batch).
Value similarity_logits(Value anchors, const std::vector<Value>& candidates, double scale);

/// The share of rows whose largest logit is that of the label. Shapes and labels as above.
Mean accuracy(Value logits, Value labels);

}  // namespace tessera
