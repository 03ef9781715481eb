#pragma once
/// What a model predicts of the held-out data after each epoch, and of the test data at the end,
/// and what it is worth.

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/config/config.h"
#include "tessera/models/task.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/validation.h"

namespace tessera {

struct Dataset;

/// What a task is worth by what was measured and predicted: perplexity, and the judge's scores
/// (nullptr: there is none); of a task that has neither, its means.
NamedMeans scores_of(const Task& task, const Validation& measured, const Judge* judge);

class EpochJudge {
 public:
  /// `samples`: those of an epoch. All must outlive it.
  EpochJudge(const RunConfig& config, const Task& task, std::int64_t samples);

  /// The epoch that ends with the step after which so many samples were consumed; 0: none does, or
  /// nothing judges it. Of several that end in one step, the last.
  std::int64_t ended(std::int64_t consumed) const;
  /// For one evaluation of what is held out of `data`; null: nothing is predicted.
  std::unique_ptr<Judge> begin(const Dataset& data) const {
    return task_.judge ? task_.judge(data) : nullptr;
  }
  /// Of a judge writes the file of predictions into `folder`. One that cannot be written does not
  /// end a run: then `problem` says why.
  EvalRecord record(std::int64_t epoch, std::int64_t step, const Validation& measured,
                    const Judge* judge, const std::string& folder, std::string& problem) const;
  /// The same of the test at the end, into `record`, which says of which weights it is. Of a task
  /// that has no scores: its means.
  void test_record(const Validation& measured, const Judge* judge, const std::string& folder,
                   TestRecord& record, std::string& problem) const;

 private:
  const RunConfig& config_;
  const Task& task_;
  std::int64_t samples_;
  bool judges_;
};

}  // namespace tessera
