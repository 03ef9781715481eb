#pragma once
/// The programs of a training run, each as one graph on whole tensors.

#include <span>

#include "tessera/ir/graph.h"
#include "tessera/models/family.h"
#include "tessera/nn/optimizer.h"

namespace tessera {

/// One training step: model, loss, gradient, clipping, update.
///
/// Batch inputs:  those of the task, [batch, ...].
/// Metrics:       loss, and the means that the task names (over the whole step), grad_norm, lr:
///                f32; ok: bool, false where the step was skipped; loss_scale: f32, if there is
///                one.
/// States:        the parameters; the optimizer's (nn/optimizer.h); data.samples, an i64 that every
///                attempt advances by `batch`, and that makes random numbers of different steps
///                differ.
Graph train_step(const Task& task, const OptimizerConfig& optimizer, std::int64_t batch);
/// Of the model's task on samples of `length` tokens, which its context admits.
Graph train_step(const ModelConfig& model, const OptimizerConfig& optimizer, std::int64_t batch,
                 std::int64_t length);

/// The same with the finished gradient of each parameter as a metric, "gradient " and its path;
/// with a loss scale, multiplied by it.
Graph with_gradients(const Graph& step);

/// The task's means without dropout and without an update, so that those of several batches add
/// up, and what it predicts. Metrics: sum_metric(name) and count_metric(name) of each mean (f32);
/// prediction_metric(name) of each prediction.
Graph evaluate_step(const Task& task, std::int64_t batch);
std::string sum_metric(const TaskMean& mean);
std::string count_metric(const TaskMean& mean);
std::string prediction_metric(std::string_view name);
/// Of a training step: Measured::tokens_per_expert.
std::string router_metric(std::int64_t router);

/// Tokens of a text that are read at a time.
std::int64_t prefill_length(const TextWriting& writing);

/// A part of a text, whose keys and values go into caches behind those of `position` tokens. The
/// caches have room for the writing's context, and for a part of prefill_length that begins within
/// it.
///
/// Batch inputs:  ids [batch, length]; position and wanted, i32 scalars.
/// Metric:        logits [batch, 1, vocabulary] of token `wanted` of the part.
/// States:        the parameters; caches.
Graph write_step(const TextWriting& writing, std::int64_t batch, std::int64_t length);

/// Sources, of which the writing's caches take what its texts are written from. Batch input: source
/// [batch, writing.source] of i32.
Graph read_step(const TextWriting& writing, std::int64_t batch);

/// Writes the first value of every cache of these programs, so that nothing is read that another
/// text left.
Graph begin_step(std::span<const Graph> writing);

/// Row i of every cache that `write` writes becomes what row rows[i] was. Caches that it only reads
/// stay: rows change places with rows of the same source. Batch input: rows [batch] of i32.
Graph reorder_step(const Graph& write);

/// Writes the first value of every state of `step`, a pure function of (seed, path); counters start
/// at zero, and copies and references are those of the first values.
/// `read`: which states it leaves to whoever reads them from a file; empty: none.
Graph initialise(const Graph& step, const std::function<bool(const State&)>& read = {});

/// Makes the copies that these programs read of parameters, once their values have come from a
/// checkpoint.
Graph copy_step(std::span<const Graph* const> programs);

}  // namespace tessera
