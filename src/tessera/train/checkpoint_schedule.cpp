#include "tessera/train/checkpoint_schedule.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr int kAllOfThem = std::numeric_limits<int>::max();
constexpr std::int64_t kMaxFailedSaves = 3;  // in a row

}  // namespace

SaveOptions save_options(const RunConfig& config, const FileCalls& calls) {
  SaveOptions out;
  out.names = checkpoint_names(config);
  constexpr std::int64_t kAll = kAllOfThem;
  out.keep_last = static_cast<int>(config.keep_last == 0 ? kAll : std::min(config.keep_last, kAll));
  out.left_out = left_out_of_saves(config);
  out.calls = calls;
  return out;
}

std::unique_ptr<BackgroundThread> background_thread(const RunConfig& config) {
  return saves_from_a_copy(config) ? std::make_unique<BackgroundThread>() : nullptr;
}

CheckpointSchedule::CheckpointSchedule(const RunConfig& config, const TrainOptions& options,
                                       OutputLock& lock, RankGroup& group, RankWriter& mine,
                                       std::function<CheckpointRecord()> record,
                                       std::function<bool()> ended)
    : config_(config),
      callbacks_(options.callbacks),
      lock_(lock),
      group_(group),
      folder_(absolute_path(checkpoints_folder(config))),
      writer_(folder_, save_options(config, options.calls), group, mine),
      record_(std::move(record)),
      ended_(std::move(ended)) {}

/// In the run's own folder, and still there.
bool CheckpointSchedule::is_here(const std::string& checkpoint) const {
  std::error_code missing;
  return fs::equivalent(fs::path(checkpoint).parent_path(), folder_, missing) &&
         fs::exists(checkpoint, missing);
}

std::string CheckpointSchedule::last() const {
  const fs::path last = checkpoint_;
  return last.parent_path() == folder_
             ? (fs::path(checkpoints_folder(config_)) / last.filename()).string()
             : checkpoint_;
}

std::optional<BestSaved> CheckpointSchedule::best() const {
  const auto name = best_ ? parse_step_name(best_->name()) : std::nullopt;
  if (!name) return std::nullopt;
  return BestSaved{name->step, (fs::path(folder_) / best_->name()).string()};
}

void CheckpointSchedule::goes_on_from(const Checkpoint& from) {
  checkpoint_ = from.path();
  if (!is_here(checkpoint_)) return;
  saved_ = from.record().step;
  group_.run_alone([&] {
    left_ = left_behind(from);
    const auto name = parse_step_name(fs::path(checkpoint_).filename().string());
    for (const StepName& other : scan_checkpoints(folder_).committed) {
      if (name && other < *name) trained_from_ = to_text(other);  // nothing newer is known
      if (name && other > *name && config_.resume == "auto") damaged_.push_back(to_text(other));
    }
  });
}

CheckpointRecord CheckpointSchedule::record() const {
  CheckpointRecord out = record_();
  if (!left_.empty()) out.texts[kRecordedLeft] = left_;
  return out;
}

void CheckpointSchedule::keep_best(const MetricsFile& metrics) {
  const std::string from = saved_ < 0 ? "" : fs::path(checkpoint_).filename().string();
  std::vector<std::string> notices;
  group_.run_alone([&] { best_.emplace(folder_, metrics.kept(), from, left_, notices); });
  for (const std::string& notice : notices) tell(callbacks_, &TrainCallback::on_notice, notice);
}

void CheckpointSchedule::validated(std::int64_t step, double loss) {
  if (!best_) return;
  if (best_->waits()) hear(writer_.wait());  // what it is compared with
  best_->validated(step, loss);
  if (saved_ == step) link_best(step, checkpoint_);
}

void CheckpointSchedule::link_best(std::int64_t step, const std::string& path) {
  if (!best_ || !best_->wants(step)) return;
  std::string problem;
  group_.run_alone([&] { problem = best_->saved(step, path); });
  if (!problem.empty()) tell(callbacks_, &TrainCallback::on_notice, problem);
}

void CheckpointSchedule::trained(std::int64_t step, bool skipped) {
  skipping_ = skipped;
  if (!skipped) trained_ = step;
  note_trained();
}

void CheckpointSchedule::note_trained() {
  const std::string name = fs::path(checkpoint_).filename().string();
  if (saved_ < 0 || trained_ <= saved_ || name == trained_from_) return;
  trained_from_ = name;
  if (config_.keep_last != 1) return;  // of several that stay, one was trained from
  std::vector<std::string> problems;
  group_.run_alone([&] {
    if (!lock_.held()) return;
    writer_.keep(kept());
    problems = writer_.tidy();
  });
  for (const std::string& problem : problems) tell(callbacks_, &TrainCallback::on_notice, problem);
}

KeptCheckpoints CheckpointSchedule::kept() const {
  KeptCheckpoints out{skipping_ ? kAllOfThem : save_options(config_, {}).keep_last, {}, damaged_};
  if (best_) out.named.push_back(best_->name());
  out.named.push_back(trained_from_);
  return out;
}

void CheckpointSchedule::look() { hear(writer_.finished()); }

void CheckpointSchedule::on_the_way(std::int64_t step, MetricsFile& metrics) {
  hear(writer_.wait());  // one at a time
  std::string problem;
  group_.run_alone([&] {
    problem = lock_.hold(metrics.file().removed().empty());
    if (problem.empty()) problem = metrics.file().sync();
  });
  if (!problem.empty()) return hear(SaveResult{step, "", problem});
  writer_.keep(kept());
  writer_.begin(record());
  look();
}

void CheckpointSchedule::at_end(std::int64_t step, MetricsFile& metrics) {
  settle(writer_.wait(), Heard::BeforeTheLast);
  std::string taken, late;
  bool here = false;
  group_.run_alone([&] {
    taken = lock_.hold(metrics.file().removed().empty());
    if (taken.empty()) late = metrics.file().sync();
    here = taken.empty() && saved_ == step && is_here(checkpoint_);
  });
  if (here && late.empty()) return;
  if (here)
    fail(Fault::Resource, "step ", step, " is saved, but not its metrics: ", late, how_to_go_on());
  SaveResult result{step, "", taken + late};
  writer_.keep(kept());
  if (result.problem.empty()) result = writer_.save(record());
  settle(result, Heard::OfTheLast);
}

std::string CheckpointSchedule::at_bad_end(std::int64_t step, std::int64_t bad,
                                           MetricsFile& metrics) {
  try {
    settle(writer_.wait(), Heard::BeforeTheLast);
    if (saved_ < step - bad || !is_here(checkpoint_)) at_end(step, metrics);
  } catch (const Error& error) {
    // Unless it is the disk's, it is another failure than that of the numbers.
    if (error.fault() != Fault::Resource) throw;
    tell(callbacks_, &TrainCallback::on_notice, error.what());
  }
  const std::string& output = config_.output;
  const std::string back =
      trained_from_.empty()
          ? "start again: there is no older checkpoint"
          : text("go back to an older checkpoint: ",
                 flags_to_go_on(output, text(checkpoints_folder(config_), "/", trained_from_)));
  return text(flags_to_go_on(output), "; if steps are skipped again, ", back);
}

/// A request to stop may come while a save is waited for: it is asked for afterwards.
void CheckpointSchedule::hear(const std::optional<SaveResult>& result) {
  settle(result, ended_() ? Heard::BeforeTheLast : Heard::OnTheWay);
}

/// Takes note of what became of a save; the run ends where too many failed in a row.
void CheckpointSchedule::settle(const std::optional<SaveResult>& result, Heard when) {
  if (!result) return;
  for (const std::string& notice : result->notices)
    tell(callbacks_, &TrainCallback::on_notice, notice);
  if (result->problem.empty()) {
    saved_ = result->step;
    checkpoint_ = result->path;
    failed_ = 0;
    link_best(saved_, checkpoint_);
    note_trained();
    return tell(callbacks_, &TrainCallback::on_save, saved_, last());
  }
  if (best_) best_->not_saved(result->step);
  const std::string what = text("step ", result->step, " is not saved: ", result->problem);
  ++failed_;
  if (when == Heard::BeforeTheLast)  // however it went, there is one more try
    return tell(callbacks_, &TrainCallback::on_notice,
                text(what, "; training has finished, and its final state is saved next"));
  if (when == Heard::OnTheWay && failed_ < kMaxFailedSaves)
    return tell(
        callbacks_, &TrainCallback::on_notice,
        text(what, "; training continues, and the next save will be tried when due (failure ",
             failed_, " of ", kMaxFailedSaves, " before the run ends)"));
  fail(Fault::Resource, what, failed_ == 1 ? "" : text("; it is failure ", failed_, " in a row"),
       how_to_go_on());
}

/// The end of a message; empty where the folder is another run's by now.
std::string CheckpointSchedule::how_to_go_on() const {
  if (!lock_.held()) return "";
  return text(checkpoint_.empty() ? "; there is no checkpoint yet"
                                  : text("; the last checkpoint is '", last(), "'"),
              "; then resume with ", flags_to_go_on(config_.output));
}

}  // namespace tessera
