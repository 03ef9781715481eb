#pragma once
/// The programs of a training run, each as one graph on whole tensors.

#include "tessera/ir/graph.h"
#include "tessera/nn/model.h"
#include "tessera/nn/optimizer.h"

namespace tessera {

/// One training step: model, loss, gradient, clipping, update.
///
/// Batch inputs:  ids, labels [batch, length] of i32 (labels: -100 where there is none).
/// Metrics:       loss (mean over the step's labels), grad_norm, lr: f32; ok: bool, false where the
/// step was skipped. States:        the parameters; the optimizer's (nn/optimizer.h); data.samples,
/// an i64 that every attempt advances by
///                `batch`, and that makes random numbers of different steps differ.
Graph train_step(const ModelConfig& model, const OptimizerConfig& optimizer, std::int64_t batch,
                 std::int64_t length);

/// The same with the finished gradient of each parameter as a metric, "gradient " and its path.
Graph with_gradients(const Graph& step);

/// Loss without dropout and without an update. Metrics: loss_sum (f32), labels (f32, how many
/// count).
Graph evaluate_step(const ModelConfig& model, std::int64_t batch, std::int64_t length);

/// Logits of one position. Batch inputs: ids [1, length]; position, an i32 scalar. Metric: logits
/// [1, 1, vocabulary].
Graph sample_step(const ModelConfig& model, std::int64_t length);

/// Writes the first value of every state of `step`, a pure function of (seed, path); counters start
/// at zero.
Graph initialise(const Graph& step);

}  // namespace tessera
