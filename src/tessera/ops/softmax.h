#pragma once
/// Softmax and the loss over a vocabulary.

#include "tessera/ir/builder.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

/// Softmax of `x` over `dim` (negative counts from the end); every other dim is a batch dim.
/// Returns the type of x.
Value softmax(Value x, int dim, Where where = Where::here());

/// log(softmax(x)) over `dim`, finite where softmax itself rounds to 0. Returns the type of x.
Value log_softmax(Value x, int dim, Where where = Where::here());

struct CrossEntropyResult {
  Value loss, logsumexp;  // both of the labels' shape
};
/// -log softmax(logits)[label] per row; 0 where the label is `ignore_index`.
///
/// Shapes: logits [..., v] f32; labels [...] i32. Any other label outside [0, v) counts as a logit
/// of 0, as pick reads it: what checks labels is the data. The gradient flows from `loss` only.
CrossEntropyResult cross_entropy(Value logits, Value labels,
                                 std::int64_t ignore_index = kIgnoredLabel,
                                 Where where = Where::here());

// cross_entropy_grad (logits, labels, logsumexp, dloss) -> dlogits, which may overwrite the logits.
extern const OpDef kSoftmax, kLogSoftmax, kCrossEntropy, kCrossEntropyGrad;

}  // namespace tessera
