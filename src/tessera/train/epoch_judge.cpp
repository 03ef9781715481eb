#include "tessera/train/epoch_judge.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// Writes the file of predictions, if there is a judge; returns its path, or nothing and the
/// problem.
std::string written(const Judge* judge, const std::string& path, std::string& problem) {
  if (judge == nullptr) return "";
  try {
    write_atomically(path, to_tsv(judge->table()));
    return path;
  } catch (const Error& error) {
    problem = text("no predictions in '", path, "': ", error.what());
    return "";
  }
}

}  // namespace

EpochJudge::EpochJudge(const RunConfig& config, const Task& task, std::int64_t samples)
    : config_(config),
      task_(task),
      samples_(samples),
      judges_(judges_epochs(config, task) && validates(config, task)) {}

std::int64_t EpochJudge::ended(std::int64_t consumed) const {
  if (!judges_) return 0;
  const std::int64_t now = std::min(consumed / samples_, config_.epochs),
                     before = (consumed - config_.global_batch_size) / samples_;
  return now > before ? now : 0;
}

EvalRecord EpochJudge::record(std::int64_t epoch, std::int64_t step, const Validation& measured,
                              const Judge* judge, const std::string& folder,
                              std::string& problem) const {
  return {.epoch = epoch,
          .step = step,
          .loss = measured.loss(),
          .scores = scores_of(task_, measured, judge),
          .predictions = written(judge, in_folder(folder, predictions_file(epoch)), problem)};
}

void EpochJudge::test_record(const Validation& measured, const Judge* judge,
                             const std::string& folder, TestRecord& record,
                             std::string& problem) const {
  record.measured.predictions = written(judge, in_folder(folder, kTestPredictionsFile), problem);
  if (!record.labelled) return;
  record.measured.loss = measured.loss();
  record.measured.scores = scores_of(task_, measured, judge);
}

NamedMeans scores_of(const Task& task, const Validation& measured, const Judge* judge) {
  NamedMeans out;
  if (!task.perplexity_of.empty())
    out.emplace_back("perplexity", std::exp(measured.mean(task.perplexity_of)));
  if (judge == nullptr) return task.perplexity_of.empty() ? measured.means() : out;
  const NamedMeans scores = judge->scores();
  out.insert(out.end(), scores.begin(), scores.end());
  return out;
}

}  // namespace tessera
