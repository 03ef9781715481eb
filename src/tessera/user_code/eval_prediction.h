#pragma once
/// What run_compute_metrics sees: all that was predicted of the held-out samples.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tessera/models/judge.h"
#include "tessera/user_code/map_dataset.h"

namespace tessera {

/// Gathered from all devices, in the order of the dataset, each sample once.
struct EvalPrediction {
  std::int64_t samples = 0;
  double loss = 0;                                      // of an own loop
  Predictions predictions = {};                         // by name: [samples, ...] of f32
  std::shared_ptr<const MapDataset> dataset = nullptr;  // of the program; none: the flags' data
  NamedMeans scores = {};  // of the flags' data: what the task itself says of the predictions

  /// The index of the largest number that was predicted of each sample under this name, whose
  /// predictions are [samples, classes]. Errors: Fault::Usage: there are none, or of other shape.
  std::vector<std::int32_t> argmax(std::string_view name = "logits") const;
  /// A feature of each sample of the dataset, one i32. Errors: Fault::Usage: the data is that of
  /// the flags; the feature is another.
  std::vector<std::int32_t> labels(std::string_view name = "labels") const;
};

/// The share of equal numbers, and F1 of class 1: what GLUE says of MRPC. Errors: Fault::Usage:
/// other numbers of predictions and labels.
NamedMeans accuracy_and_f1(const std::vector<std::int32_t>& predictions,
                           const std::vector<std::int32_t>& labels);

/// Collects predictions, and asks `metrics` for the scores. `of_task`: the task's own, or none.
std::unique_ptr<Judge> own_judge(std::unique_ptr<Judge> of_task,
                                 std::shared_ptr<const MapDataset> dataset,
                                 std::function<NamedMeans(const EvalPrediction& eval)> metrics);

}  // namespace tessera
