#include "tessera/train/run_saves.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/train/output_folder.h"

namespace tessera {

namespace {

constexpr std::int64_t kMaxFailedSaves = 3;  // in a row

}  // namespace

SaveOptions save_options(const RunConfig& config, const FileCalls& calls) {
  SaveOptions out;
  constexpr std::int64_t kAll = std::numeric_limits<int>::max();
  out.keep_last = static_cast<int>(config.keep_last == 0 ? kAll : std::min(config.keep_last, kAll));
  out.calls = calls;
  return out;
}

RunSaves::RunSaves(const RunConfig& config, const TrainOptions& options, Crew& crew,
                   RankSaver& mine, std::function<CheckpointRecord()> record)
    : config_(config),
      callbacks_(options.callbacks),
      saver_(in_folder(config.output, kCheckpointsFolder), save_options(config, options.calls),
             crew, mine),
      record_(std::move(record)) {}

void RunSaves::goes_on_from(std::int64_t step, const std::string& path) {
  saved_ = step;
  checkpoint_ = path;
}

void RunSaves::keep_best(const MetricsFile& metrics) {
  best_.emplace(in_folder(config_.output, kCheckpointsFolder), metrics.last());
}

void RunSaves::validated(std::int64_t step, double loss) {
  if (!best_) return;
  if (best_->waits()) settle(saver_.wait(), kMaxFailedSaves);  // what it is compared with
  best_->validated(step, loss);
  if (saved_ == step) link_best(step, checkpoint_);
}

void RunSaves::link_best(std::int64_t step, const std::string& path) {
  const std::string problem = best_ ? best_->saved(step, path) : "";
  if (!problem.empty()) tell(callbacks_, &TrainCallback::on_notice, problem);
}

void RunSaves::look() { settle(saver_.finished(), kMaxFailedSaves); }

void RunSaves::on_the_way(std::int64_t step, MetricsFile& metrics) {
  settle(saver_.wait(), kMaxFailedSaves);  // one at a time
  if (const std::string problem = metrics.sync(); !problem.empty())
    return settle(SaveResult{step, "", problem}, kMaxFailedSaves);
  if (best_) saver_.keep(best_->name());
  saver_.begin(record_());
  look();
}

void RunSaves::at_end(std::int64_t step, MetricsFile& metrics) {
  settle(saver_.wait(), kMaxFailedSaves + 1);  // however it went, there is one more try
  SaveResult result{step, "", metrics.sync()};
  if (result.problem.empty() && saved_ == step) return;
  if (best_) saver_.keep(best_->name());
  if (result.problem.empty()) result = saver_.save(record_());
  settle(result, 1);
}

/// Takes note of what became of a save; the run ends where `most` failed in a row.
void RunSaves::settle(const std::optional<SaveResult>& result, std::int64_t most) {
  if (!result) return;
  for (const std::string& notice : result->notices)
    tell(callbacks_, &TrainCallback::on_notice, notice);
  if (result->problem.empty()) {
    saved_ = result->step;
    checkpoint_ = result->path;
    failed_ = 0;
    link_best(saved_, checkpoint_);
    return tell(callbacks_, &TrainCallback::on_save, saved_, checkpoint_);
  }
  if (best_) best_->not_saved(result->step);
  const std::string what = text("step ", result->step, " is not saved: ", result->problem);
  if (++failed_ < most)
    return tell(
        callbacks_, &TrainCallback::on_notice,
        text(what, "; training goes on, and a save is tried again when the next is due (failure ",
             failed_, " of ", kMaxFailedSaves, " that end the run)"));
  fail(Fault::Resource, what, failed_ == 1 ? "" : text("; it is failure ", failed_, " in a row"),
       checkpoint_.empty() ? "; there is no checkpoint yet"
                           : text("; the last checkpoint is '", checkpoint_, "'"),
       "; then go on with ", flags_to_go_on(config_.output));
}

}  // namespace tessera
