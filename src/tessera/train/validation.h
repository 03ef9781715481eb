#pragma once
/// What a validation measures.

#include <functional>
#include <string>
#include <vector>

#include "tessera/models/task.h"
#include "tessera/runtime/engine.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/measured_runs.h"

namespace tessera {

/// The means of a task over everything that counts in several runs of program "evaluate".
class Validation {
 public:
  /// `judge`: is shown what is predicted; null: nobody is.
  explicit Validation(const std::vector<TaskMean>& means, Judge* judge = nullptr);

  /// Adds what the last run measured, of samples [first, first + count).
  void add(const Engine& engine, std::int64_t first, std::int64_t count);
  double loss() const;
  /// Of the mean of such a name.
  double mean(std::string_view name) const;
  /// All but the loss, where it is one of them.
  NamedMeans means() const;

 private:
  double mean(std::size_t i) const { return counts_[i] > 0 ? sums_[i] / counts_[i] : 0; }

  const std::vector<TaskMean>& means_;
  Judge* judge_;
  std::vector<double> sums_, counts_;
};

/// Runs program "evaluate" over all samples, `batch` at a time. False: `stopped` said so before the
/// end.
bool measure_samples(MeasuredRuns& runs, const Samples& samples, std::int64_t batch,
                     Validation& measured, const std::function<bool()>& stopped);

/// What program "evaluate" predicted in its last run.
Predictions predictions_of(const Engine& engine);

/// The file of what was predicted after an epoch, in the folder OUTPUT: "predictions-epoch-1.tsv".
std::string predictions_file(std::int64_t epoch);
/// That of the test at the end.
inline constexpr const char* kTestPredictionsFile = "predictions-test.tsv";
/// Its text: the names of the columns, then a line for each row, with tabs between. Tabs and ends
/// of lines within a cell become blanks.
std::string to_tsv(const PredictionTable& table);

}  // namespace tessera
