#pragma once
/// What the predictions of a task are worth: scores that are no means over batches, such as F1, and
/// a table of what was predicted.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tensor/host_tensor.h"

namespace tessera {

/// Numbers by name: means that a task measures beside its loss, and scores.
using NamedMeans = std::vector<std::pair<std::string, double>>;

/// What a task predicted of the samples of a batch, by the names of Measured::predictions: tensors
/// [batch, ...] of f32.
using Predictions = std::map<std::string, HostTensor, std::less<>>;

/// A line for each thing that was predicted, in the order of the data.
struct PredictionTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Judges one evaluation: all samples that Task::valid_samples makes, each once.
class Judge {
 public:
  virtual ~Judge() = default;
  /// To be called before add(): the table has probabilities too.
  virtual void keep_probabilities() {}
  /// Row i of each tensor was predicted of sample `first` + i, for `count` samples; rows behind
  /// these are of no sample. Batches come in the order of the samples.
  virtual void add(std::int64_t first, std::int64_t count, const Predictions& predictions) = 0;
  /// Of all that was added: accuracy, f1, ... None where the data is Dataset::unlabelled; then the
  /// table has no labels either.
  virtual NamedMeans scores() const = 0;
  virtual PredictionTable table() const = 0;
};

/// Probabilities of `count` logits, and one as a table has it.
std::vector<double> softmax_of(const float* logits, std::int64_t count);
std::string probability_text(double probability);

}  // namespace tessera
