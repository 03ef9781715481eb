#include "tessera/train/validation.h"

#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

Validation::Validation(const std::vector<TaskMean>& means)
    : means_(means), sums_(means.size()), counts_(means.size()) {}

void Validation::add(const Executor& executor) {
  for (std::size_t i = 0; i < means_.size(); ++i) {
    sums_[i] += executor.scalar(kEvaluateProgram, sum_metric(means_[i]));
    counts_[i] += executor.scalar(kEvaluateProgram, count_metric(means_[i]));
  }
}

double Validation::loss() const {
  double out = 0;
  for (std::size_t i = 0; i < means_.size(); ++i) out += means_[i].weight * mean(i);
  return out;
}

NamedMeans Validation::means() const {
  NamedMeans out;
  for (std::size_t i = 0; i < means_.size(); ++i) {
    if (means_[i].name != kLossMean) out.emplace_back(means_[i].name, mean(i));
  }
  return out;
}

}  // namespace tessera
