#include "tessera/train/validation.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

Validation::Validation(const std::vector<TaskMean>& means, Judge* judge)
    : means_(means), judge_(judge), sums_(means.size()), counts_(means.size()) {}

void Validation::add(const Engine& engine, std::int64_t first, std::int64_t count) {
  for (std::size_t i = 0; i < means_.size(); ++i) {
    sums_[i] += engine.scalar(kEvaluateProgram, sum_metric(means_[i]));
    counts_[i] += engine.scalar(kEvaluateProgram, count_metric(means_[i]));
  }
  if (judge_ != nullptr) judge_->add(first, count, predictions_of(engine));
}

double Validation::loss() const {
  double out = 0;
  for (std::size_t i = 0; i < means_.size(); ++i) out += means_[i].weight * mean(i);
  return out;
}

double Validation::mean(std::string_view name) const {
  const auto found = std::ranges::find(means_, name, &TaskMean::name);
  check(found != means_.end(), "no mean is called ", name);
  return mean(static_cast<std::size_t>(found - means_.begin()));
}

NamedMeans Validation::means() const {
  NamedMeans out;
  for (std::size_t i = 0; i < means_.size(); ++i) {
    if (means_[i].name != kLossMean) out.emplace_back(means_[i].name, mean(i));
  }
  return out;
}

bool measure_samples(MeasuredRuns& runs, const Samples& samples, std::int64_t batch,
                     Validation& measured, const std::function<bool()>& stopped) {
  const std::int64_t size = samples.size();
  for (std::int64_t first = 0; first < size; first += batch) {
    if (stopped()) return false;
    runs.run(kEvaluateProgram, [&](BatchInputs& inputs) {
      runs.group().run_alone([&] { samples.fill(first, batch, inputs); });
    });
    measured.add(runs.group().engine(), first, std::min(batch, size - first));
  }
  return true;
}

Predictions predictions_of(const Engine& engine) {
  const std::string prefix = prediction_metric("");
  Predictions out;
  for (const NamedTensor& metric : engine.plan().program(kEvaluateProgram).metrics) {
    if (!metric.name.starts_with(prefix)) continue;
    HostTensor value = engine.metric(kEvaluateProgram, metric.name);
    if (value.dtype() != DType::F32) value = value.cast(DType::F32);
    out.emplace(metric.name.substr(prefix.size()), std::move(value));
  }
  return out;
}

std::string predictions_file(std::int64_t epoch) {
  return text("predictions-epoch-", epoch, ".tsv");
}

std::string to_tsv(const PredictionTable& table) {
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out += '\t';
      for (const char c : cells[i]) out += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
    }
    out += '\n';
  };
  line(table.columns);
  for (const std::vector<std::string>& row : table.rows) line(row);
  return out;
}

}  // namespace tessera
