#include "tessera/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "tessera/config/output_folder.h"
#include "tessera/config/recorded.h"
#include "tessera/data/dataset.h"
#include "tessera/files/file.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/sources/stream_data.h"
#include "tessera/train/about_run.h"
#include "tessera/train/checkpoint_schedule.h"
#include "tessera/train/event_file.h"
#include "tessera/train/free_memory.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/output_check.h"
#include "tessera/train/product_rate.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/recorder.h"
#include "tessera/train/run_evaluations.h"
#include "tessera/train/run_requirements.h"
#include "tessera/train/run_summary.h"
#include "tessera/train/run_texts.h"
#include "tessera/train/skipped_steps.h"
#include "tessera/train/step_metrics.h"
#include "tessera/train/within_cap.h"

namespace tessera {

namespace {

constexpr std::int64_t kMaxBadSteps = 3;  // in a row

using Clock = std::chrono::steady_clock;
double between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

bool due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

class Trainer {
 public:
  Trainer(PreparedRun run, const Backend& backend, const TrainOptions& options);
  TrainResult run();

 private:
  const RunConfig& config() const { return setup_.config; }
  const Task& task() const { return setup_.task(); }
  std::int64_t first_step() const { return run_.from ? run_.from->record().step : 0; }
  std::int64_t samples() const { return group_->count_of(kSamplesState); }  // consumed
  const TrainProgram& next_program() const;
  StepRecord attempt();
  void after_step(const StepRecord& record);
  void save_if_due(bool wanted);
  void train_and_validate();
  void save_after_failure();
  void count_bad(const StepRecord& record);
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  /// No step follows.
  bool ended() const { return step_ >= last_ || stopped(); }
  void validate();
  void validate_if_due();
  void check_metrics();
  void write_profile();
  Summary summary();

  template <typename... Args>
  void tell(void (TrainCallback::*what)(Args...), const std::type_identity_t<Args>&... args) const {
    tessera::tell(options_.callbacks, what, args...);
  }

  PreparedRun run_;
  TrainOptions options_;
  KeptNotices notices_;
  std::string backend_, isa_, f32_products_;
  Clock::time_point begin_ = Clock::now();
  const RunSetup setup_;
  const std::unique_ptr<Samples> samples_;
  const std::unique_ptr<Samples> held_out_;  // none: nothing is validated
  const std::string output_;                 // wherever the working folder is by now
  OutputLock lock_;
  std::optional<RankWriter> share_;  // this rank's of saves
  std::optional<RankGroup> group_;
  std::optional<CheckpointSchedule> saves_;
  std::optional<RunTexts> texts_;
  std::optional<MeasuredRuns> runs_;
  RunMemory memory_;
  std::optional<MetricsFile> metrics_;
  std::optional<RunEvaluations> evaluations_;
  std::unique_ptr<EventFile> events_;  // none: nobody asked for it
  std::optional<Recorder> recorder_;   // until the profile is written

  std::int64_t step_ = 0;               // attempts done
  std::int64_t last_ = 0;               // the step after which this invocation ends
  std::int64_t bad_ = 0, skipped_ = 0;  // steps that were skipped: in a row, and in all
  std::int64_t hopeless_ = 0;           // of those in a row: without a scale that can fall
  bool save_due_ = false;               // the next step that is not skipped is saved
  bool cut_short_ = false;              // an evaluation, by a request to stop
  double step_seconds_ = 0;
  std::int64_t tokens_ = 0;  // of the steps that were done
  double full_steps_ = 0;    // as many on the longest samples would have been as much work
  double product_rate_ = 0;  // FLOP/s of one device
  RunRequirements facts_;    // of all ranks
};

Trainer::Trainer(PreparedRun run, const Backend& backend, const TrainOptions& options)
    : run_(std::move(run)),
      options_(options),
      backend_(backend.reads_programs() ? backend.name() : ""),
      isa_(backend.isa()),
      f32_products_(backend.f32_products()),
      setup_(run_.config, run_.task),
      samples_(task().train_samples(*run_.data, sample_choices(config()))),
      held_out_(validates(config(), task())
                    ? task().valid_samples(*run_.data, valid_choices(config()))
                    : nullptr),
      output_(absolute_path(config().output)),
      lock_(config().output, run_.notices, options_.calls),
      step_(first_step()),
      last_(config().exit_interval > 0 ? std::min(config().steps, step_ + config().exit_interval)
                                       : config().steps) {
  options_.callbacks.push_back(&notices_);
  tell(&TrainCallback::on_lock, lock_.path());
  require_same_output(run_);
  if (options_.saves) record_base(run_, options_.world);
  checkpoint_record(run_, step_, 0);  // what cannot be recorded is told now, not by the first save
  for (const std::string& notice : run_.notices) tell(&TrainCallback::on_notice, notice);
  auto background = background_thread(config());
  if (!config().profile.empty())
    recorder_.emplace(absolute_path(config().profile), config().profile_steps, backend);
  product_rate_ = product_rate_for(setup_, last_ - step_, backend);
  Compiled compiled = compile_programs(setup_, wanted_programs(setup_), backend);
  facts_ = requirements_of_all(compiled.plan, options_.world);
  require_within_cap(config(), facts_);
  RunStart start = run_start(setup_, compiled, facts_);
  start.about = about_run(run_, setup_, *samples_);
  start.first_step = step_;
  start.product_flops_per_s = product_rate_;
  if (!backend_.empty()) start.kernels = {backend_};
  if (!backend.in_main_memory())
    start.main_memory_bytes -= compiled.plan.peak_bytes() * compiled.plan.ranks();
  tell(&TrainCallback::on_start, start);
  const std::string shortage =
      backend.in_main_memory()
          ? short_of_memory(config(), compiled.plan, backend.device(), options_.world)
          : "";
  if (!shortage.empty()) tell(&TrainCallback::on_notice, shortage);
  share_.emplace(compiled.plan, save_options(config(), options_.calls), std::move(background));
  memory_.outside = outside_arena(compiled, tokens_in_memory(*run_.data, config()));
  group_.emplace(std::move(compiled.plan), backend, options_.world, options_.engine);
  group_->set_writer(*share_);
  runs_.emplace(*group_);
  saves_.emplace(
      config(), options_, lock_, *group_, *share_,
      [this] { return checkpoint_record(run_, step_, samples()); }, [this] { return ended(); });
  texts_.emplace(*group_, task(), run_, held_out_ ? *held_out_ : *samples_, options_);
  memory_.arena_bytes = backend_.empty() ? group_->plan().bytes(Memory::Device) : 0;
  memory_.huge_page_bytes = group_->engine().huge_page_bytes();
  tell(&TrainCallback::on_memory, memory_);
  if (recorder_) recorder_->reserve(group_->engine(), kTrainProgram);
  group_->require_shared_folder(absolute_path(checkpoints_folder(config())), options_.calls);
  if (run_.from) {
    group_->load(*run_.from);
    saves_->goes_on_from(*run_.from);
  } else {
    group_->run(kInitProgram);
    const std::string lacking = run_.init ? group_->load_weights(*run_.init, run_.anew)
                                : run_.pretrained
                                    ? group_->load_weights(*run_.pretrained, run_.anew)
                                    : "";
    if (!lacking.empty()) tell(&TrainCallback::on_notice, lacking);
  }
  // Only now is anything that an earlier run left behind changed.
  group_->run_alone([&] {
    if (!run_.from) {  // of a run that is replaced
      for (const std::string& problem : remove_run(output_, options_.calls))
        tell(&TrainCallback::on_notice, problem);
    }
    metrics_.emplace(in_folder(output_, kMetricsFile), step_, options_.calls);
    events_ = event_file(config(), step_, options_.calls);
    lock_.write_config(to_toml(run_.to_repeat()));
  });
  if (events_) options_.callbacks.push_back(&*events_);
  if (config().keep_best) saves_->keep_best(*metrics_);
  evaluations_.emplace(RunEvaluations::Parts{run_, setup_, samples_->size(), held_out_.get(),
                                             *runs_, *texts_, *saves_, *metrics_, options_,
                                             output_});
}

void Trainer::train_and_validate() {
  validate_if_due();  // where a request to stop cut it short
  save_if_due(false);
  while (!ended()) after_step(attempt());
  if (step_ >= config().steps && config().eval_at_end) validate();
}

TrainResult Trainer::run() {
  try {
    train_and_validate();
  } catch (...) {
    if (options_.failed != nullptr && options_.failed->load()) save_after_failure();
    throw;
  }
  const bool finished = step_ >= config().steps;
  if (recorder_) write_profile();  // of fewer steps than asked for
  TrainResult out;
  const bool done = step_ >= last_ && !cut_short_;
  out.ending = !done ? Ending::Stopped : finished ? Ending::Finished : Ending::Interval;
  if (options_.saves) saves_->at_end(step_, *metrics_);
  if (options_.saves && done && finished) cut_short_ = !evaluations_->test(step_);
  if (cut_short_) out.ending = Ending::Stopped;
  check_metrics();
  if (bad_ > 0) tell(&TrainCallback::on_notice, skipped_end_text(config(), step_, bad_));
  const std::string late = events_ ? events_->finish() : "";
  if (!late.empty()) tell(&TrainCallback::on_notice, late);
  out.summary = summary();
  group_->run_alone(
      [&] { write_atomically(in_folder(output_, kSummaryFile), to_json(out.summary)); });
  group_->stop();
  if (const std::string removed = metrics_->file().removed(); !removed.empty())
    fail(Fault::Resource, removed, ": its lines are lost; the state after step ", step_,
         " is saved in '", saves_->last(), "'");
  return out;
}

/// Of the bucket that the next step's samples belong to.
const TrainProgram& Trainer::next_program() const {
  const std::int64_t length = samples_->bucket_length(samples());
  return *std::find_if(
      setup_.trains.begin(), setup_.trains.end(),
      [&](const TrainProgram& program) { return program.bucket_length == length; });
}

/// One training step.
StepRecord Trainer::attempt() {
  const std::int64_t batch = config().global_batch_size;
  const TrainProgram& program = next_program();
  const std::int64_t tokens = batch * program.task.tokens;
  // Steps of a profile have the same calls.
  Recorder* const recorder = recorder_ && program.bucket_length == 0 ? &*recorder_ : nullptr;
  StepRecord out;
  Clock::time_point begin;
  runs_->run(
      program.name.c_str(),
      [&](BatchInputs& inputs) {
        begin = Clock::now();
        out.place = place_in_epoch(samples(), batch, samples_->size());
        const std::int64_t first = samples();
        if (task().data != DataKind::Program) return samples_->fill(first, batch, inputs);
        group_->run_alone([&] { samples_->fill(first, batch, inputs); });
      },
      recorder != nullptr ? recorder->calls_of_step() : nullptr);
  const Clock::time_point end = Clock::now();
  out.seconds = between(begin, end);
  out.step = ++step_;
  group_->set_step(step_);
  if (recorder != nullptr) recorder->step_done(step_, begin, end);
  read_metrics(group_->engine(), program.name, program.task, config().optimizer, out);
  out.tokens = tokens;
  out.tokens_per_s = static_cast<double>(tokens) / out.seconds;
  out.backend = backend_;
  out.host_bytes = group_->engine().host_bytes();
  step_seconds_ += out.seconds;
  tokens_ += tokens;
  full_steps_ += share_of_full_step(group_->plan(), program.name);
  return out;
}

/// What follows a step, in this order: whatever of a step is in the metrics was written before its
/// checkpoint, so a resumed run misses none of it.
void Trainer::after_step(const StepRecord& record) {
  metrics_->train(record);
  tell(&TrainCallback::on_step, record);
  if (options_.tells_ranks) group_->send_step(record);
  if (options_.lr != nullptr) group_->set_rate(options_.lr->exchange(kRateAsItIs));
  count_bad(record);
  if (recorder_ && recorder_->complete()) write_profile();
  validate_if_due();
  if (due(config().sample_every, step_)) texts_->show(step_);
  check_metrics();
  saves_->look();
  const bool asked = options_.save != nullptr && options_.save->exchange(false);
  save_if_due(asked || due(config().save_every, step_));
}

/// Samples or scores failed between two programs, so the ranks wait for the next one.
void Trainer::save_after_failure() {
  if (!options_.saves || step_ == first_step()) return;
  try {
    saves_->at_end(step_, *metrics_);
  } catch (const Error& error) {
    tell(&TrainCallback::on_notice, text("the run is not saved: ", error.what()));
  }
}

/// The save at the end is not one on the way.
void Trainer::save_if_due(bool wanted) {
  save_due_ = save_due_ || wanted;
  if (!options_.saves) return;
  const bool now = save_due_ && bad_ == 0;  // a skipped step left what the one before it did
  if ((!now && !saves_->best_is_due(step_)) || ended()) return;
  save_due_ = false;
  saves_->on_the_way(step_, *metrics_);
}

/// While the loss scale can fall, a bad step with a finite loss does not count towards the end of
/// the run: the next step is tried with a smaller one. A loss is computed without the scale.
void Trainer::count_bad(const StepRecord& record) {
  const auto least = static_cast<float>(config().optimizer.loss_scale.least);
  const bool falls = std::isfinite(record.loss) && record.loss_scale && *record.loss_scale > least;
  bad_ = record.ok ? 0 : bad_ + 1;
  hopeless_ = record.ok || falls ? 0 : hopeless_ + 1;
  saves_->trained(step_, !record.ok);
  if (record.ok) return;
  ++skipped_;
  tell(&TrainCallback::on_notice,
       text("step ", step_, " was skipped: loss ", record.loss, ", gradient norm ",
            record.grad_norm, record.loss_scale ? text(", loss scale ", *record.loss_scale) : ""));
  if (hopeless_ < kMaxBadSteps) return;
  const std::string how_to_go_on = saves_->at_bad_end(step_, bad_, *metrics_);
  fail_of_skipped(config(), record, bad_, hopeless_, how_to_go_on);
}

void Trainer::validate() { cut_short_ = !evaluations_->validate(step_, samples()); }

void Trainer::validate_if_due() {
  if (evaluations_->due(step_, samples())) validate();
}

void Trainer::write_profile() {
  if (recorder_->empty()) {
    tell(
        &TrainCallback::on_notice,
        text("no profile: it records steps ", setup_.trains.size() > 1 ? "of the last bucket " : "",
             "after ", Recorder::kWarmUp, " for warm-up, but only ", recorder_->seen(), " ran"));
  } else {
    std::string table;
    group_->run_alone([&] { table = recorder_->write(); });
    tell(&TrainCallback::on_profile, config().profile, table);
  }
  recorder_.reset();
}

/// A disk that takes no more lines does not end the run: they are kept until it does, or until a
/// save fails for want of them.
void Trainer::check_metrics() {
  for (AppendedFile* file : {&metrics_->file(), events_ ? &events_->file() : nullptr}) {
    const std::string notice = file == nullptr ? "" : file->late_notice();
    if (!notice.empty()) tell(&TrainCallback::on_notice, notice);
  }
}

Summary Trainer::summary() {
  const Plan& plan = group_->plan();
  Summary out;
  out.steps = step_;
  out.backend = backend_;
  out.isa = isa_;
  out.f32_products = f32_products_;
  out.skipped_steps = skipped_;
  out.train_loss = metrics_->train_loss();
  out.val_loss = metrics_->valid_loss();
  out.seconds = between(begin_, Clock::now());
  out.tokens_per_s = tokens_ == 0 ? 0 : static_cast<double>(tokens_) / step_seconds_;
  const auto devices = static_cast<double>(plan.ranks());
  add_plan(out, setup_, plan, facts_);
  out.product_flops_per_s = product_rate_;
  if (step_seconds_ > 0)
    out.mfu =
        utilization(facts_.model_flops() * full_steps_, step_seconds_, product_rate_ * devices);
  out.huge_page_bytes = memory_.huge_page_bytes;
  out.outside = memory_.outside;
  out.outside.steps += runs_->raised_bytes();
  out.notices = notices_.all;
  out.peak_rss_bytes = peak_rss_bytes();
  if (tokens_ == 0 || !backend_.empty()) return out;  // nothing was measured
  const UsedBytes used = group_->most_used_bytes();
  out.measured_peak_bytes = used.device;
  out.measured_host_bytes = host_use(config(), used.host).memory;
  return out;
}

}  // namespace

TrainResult train(PreparedRun run, const Backend& backend, const TrainOptions& options) {
  return Trainer(std::move(run), backend, options).run();
}

}  // namespace tessera
