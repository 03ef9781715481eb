#pragma once
/// What a validation measures.

#include <vector>

#include "tessera/models/task.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// The means of a task over everything that counts in several runs of program "evaluate".
class Validation {
 public:
  explicit Validation(const std::vector<TaskMean>& means);

  /// Adds what the last run measured.
  void add(const Executor& executor);
  double loss() const;
  /// All but the loss, where it is one of them.
  NamedMeans means() const;

 private:
  double mean(std::size_t i) const { return counts_[i] > 0 ? sums_[i] / counts_[i] : 0; }

  const std::vector<TaskMean>& means_;
  std::vector<double> sums_, counts_;
};

}  // namespace tessera
