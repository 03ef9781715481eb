#include "tessera/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>

#include "tessera/data/file.h"
#include "tessera/data/token_stream.h"
#include "tessera/train/checkpoint_saver.h"
#include "tessera/train/crew.h"
#include "tessera/train/generate.h"
#include "tessera/train/mesh_report.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/programs.h"
#include "tessera/train/recorder.h"

namespace tessera {

namespace {

constexpr std::int64_t kMaxBadSteps = 3, kMaxFailedSaves = 3;  // in a row
constexpr std::size_t kMeasuredRuns = 2;  // of each program, each with a pattern of its own
constexpr const char* kSamplesState = "data.samples";

using Clock = std::chrono::steady_clock;
double between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

bool due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

class Trainer {
 public:
  Trainer(PreparedRun run, Device& device, const TrainOptions& options);
  TrainResult run();

 private:
  const RunConfig& config() const { return run_.config; }
  std::int64_t first_step() const { return run_.from ? run_.from->record().step : 0; }
  std::int64_t samples() const;  // consumed
  /// Runs a program whose batch `fill` writes. Its first runs are the proof that the plan is the
  /// truth: what they leave of a pattern in the arena is what was used.
  template <typename Fill>
  void execute(const char* program, const Fill& fill, std::vector<CallTime>* times = nullptr);
  void restore();
  void announce(const Compiled& compiled) const;
  StepRecord attempt();
  void after_step(const StepRecord& record);
  void count_bad(const StepRecord& record);
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  void validate();
  void validate_if_due();
  void write_sample();
  void check_metrics();
  void save_on_the_way();
  void save_and_wait();
  void settle(const std::optional<SaveResult>& result, std::int64_t most = kMaxFailedSaves);
  void write_profile();
  Summary summary() const;

  template <typename... Args>
  void tell(void (TrainCallback::*what)(Args...), const std::type_identity_t<Args>&... args) const {
    for (TrainCallback* callback : options_.callbacks) (callback->*what)(args...);
  }

  PreparedRun run_;
  TrainOptions options_;
  std::string isa_;
  Clock::time_point begin_ = Clock::now();
  OutputLock lock_;
  Sampler sampler_;
  std::optional<CheckpointSaver> saver_;
  std::optional<Crew> crew_;
  RunMemory memory_;
  std::optional<MetricsFile> metrics_;
  std::optional<Recorder> recorder_;  // until the profile is written

  std::int64_t step_ = 0;          // attempts done
  std::int64_t last_ = 0;          // the step after which this invocation ends
  std::int64_t saved_ = -1;        // the step of the last checkpoint
  std::string checkpoint_;         // and its path
  std::int64_t failed_saves_ = 0;  // in a row
  bool metrics_late_ = false;      // lines wait for room on the disk, and that was told
  std::int64_t bad_ = 0, skipped_ = 0;
  bool cut_short_ = false;  // a validation, by a request to stop
  double step_seconds_ = 0;
  std::map<std::string, std::size_t> runs_;  // of each program, until they are enough to measure
  std::int64_t measured_bytes_ = 0;
};

Trainer::Trainer(PreparedRun run, Device& device, const TrainOptions& options)
    : run_(std::move(run)),
      options_(options),
      isa_(device.isa()),
      lock_(config().output, run_.notices, options_.calls),
      sampler_(run_.data.tokens.train(),
               {config().model.context, static_cast<std::uint64_t>(config().seed),
                config().sample_order}),
      step_(first_step()),
      last_(config().exit_interval > 0 ? std::min(config().steps, step_ + config().exit_interval)
                                       : config().steps) {
  require_same_output(run_);
  for (const std::string& notice : run_.notices) tell(&TrainCallback::on_notice, notice);
  if (!config().profile.empty())
    recorder_.emplace(config().profile, config().profile_steps, device);
  Compiled compiled = compile_programs(config(), wanted_programs(config()), device);
  announce(compiled);
  SaveOptions save;
  constexpr std::int64_t kAll = std::numeric_limits<int>::max();
  save.keep_last =
      static_cast<int>(config().keep_last == 0 ? kAll : std::min(config().keep_last, kAll));
  save.calls = options_.calls;
  saver_.emplace(in_folder(config().output, kCheckpointsFolder), std::move(save),
                 save_copy_bytes(config(), compiled.plan));
  memory_.outside =
      outside_arena(compiled, static_cast<std::int64_t>(run_.data.tokens.all().size()));
  crew_.emplace(std::move(compiled.plan), device, options_.world, options_.executor);
  memory_.arena_bytes = crew_->plan().peak_bytes();
  memory_.huge_page_bytes = crew_->executor().huge_page_bytes();
  tell(&TrainCallback::on_memory, memory_);
  if (recorder_) recorder_->reserve(crew_->executor(), kTrainProgram);
  if (run_.from) {
    restore();
  } else {
    crew_->run(kInitProgram);
  }
  // Only now is anything that an earlier run left behind changed.
  metrics_.emplace(in_folder(config().output, kMetricsFile), step_, options_.calls);
  write_atomically(in_folder(config().output, kConfigFile), to_toml(run_.told));
}

void Trainer::announce(const Compiled& compiled) const {
  RunStart start;
  start.first_step = step_;
  start.steps = config().steps;
  start.parameters = count_parameters(compiled.plan);
  start.tokens_per_step = config().global_batch_size * config().model.context;
  start.peak_bytes = compiled.plan.peak_bytes();
  start.save_copy_bytes = save_copy_bytes(config(), compiled.plan);
  start.flops_per_step =
      compiled.plan.program(kTrainProgram).flops * static_cast<double>(compiled.plan.mesh.ranks());
  start.compile_seconds = compiled.seconds;
  tell(&TrainCallback::on_start, start);
}

template <typename Fill>
void Trainer::execute(const char* program, const Fill& fill, std::vector<CallTime>* times) {
  std::size_t& runs = runs_[program];
  if (runs == kMeasuredRuns) return crew_->run(program, fill, {.times = times});
  const std::int64_t peak = peak_rss_bytes();
  std::int64_t used = 0;
  crew_->run(program, fill, {.times = times, .used_bytes = &used});
  memory_.outside.steps += peak_rss_bytes() - peak;
  measured_bytes_ = std::max(measured_bytes_, used);
  check(crew_->executor().guard_intact(), "program ", program, " wrote beyond its arena");
  ++runs;
}

/// All states from the checkpoint.
void Trainer::restore() {
  const Checkpoint& from = *run_.from;
  crew_->load(from);
  saved_ = step_;
  checkpoint_ = from.path();
}

TrainResult Trainer::run() {
  validate_if_due();  // where a request to stop cut it short
  while (step_ < last_ && !stopped()) after_step(attempt());
  const bool finished = step_ >= config().steps;
  if (finished && config().eval_at_end) validate();
  if (recorder_) write_profile();  // of fewer steps than asked for
  TrainResult out;
  const bool done = step_ >= last_ && !cut_short_;
  out.ending = !done ? Ending::Stopped : finished ? Ending::Finished : Ending::Interval;
  save_and_wait();
  out.summary = summary();
  write_atomically(in_folder(config().output, kSummaryFile), to_json(out.summary));
  crew_->dismiss();
  if (const std::string removed = metrics_->removed(); !removed.empty())
    fail(Fault::Resource, removed, ": its lines are lost; the state after step ", step_,
         " is saved in '", checkpoint_, "'");
  return out;
}

/// One training step.
StepRecord Trainer::attempt() {
  const std::int64_t batch = config().global_batch_size, tokens = batch * config().model.context;
  Clock::time_point begin;
  execute(
      kTrainProgram,
      [&](BatchInputs& inputs) {
        begin = Clock::now();
        sampler_.fill(samples(), batch, inputs.fill<std::int32_t>("ids"),
                      inputs.fill<std::int32_t>("labels"));
      },
      recorder_ ? recorder_->calls_of_step() : nullptr);
  const Clock::time_point end = Clock::now();
  StepRecord out;
  out.seconds = between(begin, end);
  const auto metric = [&](const char* name) {
    return crew_->executor().scalar(kTrainProgram, name);
  };
  out.step = ++step_;
  crew_->set_step(step_);
  if (recorder_) recorder_->step_done(step_, begin, end);
  out.loss = metric("loss");
  out.lr = metric("lr");
  out.grad_norm = metric("grad_norm");
  out.ok = metric("ok") != 0;
  out.tokens_per_s = static_cast<double>(tokens) / out.seconds;
  step_seconds_ += out.seconds;
  return out;
}

/// What follows a step, in this order: whatever of a step is in the metrics was written before its
/// checkpoint, so a resumed run misses none of it.
void Trainer::after_step(const StepRecord& record) {
  metrics_->train(record);
  tell(&TrainCallback::on_step, record);
  count_bad(record);
  if (recorder_ && recorder_->complete()) write_profile();
  validate_if_due();
  if (due(config().sample_every, step_)) write_sample();
  check_metrics();
  settle(saver_->finished());
  // The save at the end is not one on the way.
  if (due(config().save_every, step_) && step_ < last_ && !stopped()) save_on_the_way();
}

void Trainer::count_bad(const StepRecord& record) {
  bad_ = record.ok ? 0 : bad_ + 1;
  if (record.ok) return;
  ++skipped_;
  tell(&TrainCallback::on_notice, text("step ", step_, " was skipped: loss ", record.loss,
                                       ", gradient norm ", record.grad_norm));
  if (bad_ < kMaxBadSteps) return;
  try {
    save_and_wait();
  } catch (const Error& error) {  // the numbers are what ended the run
    tell(&TrainCallback::on_notice, error.what());
  }
  fail(Fault::Numerics, "loss or gradient was inf or nan in ", bad_, " steps in a row, ",
       step_ - bad_ + 1, " to ", step_, " (loss ", record.loss, ", gradient norm ",
       record.grad_norm, ", lr ", record.lr,
       "); no parameter took harm; lower --lr or --clip-grad, or lengthen --lr-warmup-steps, and "
       "go on with ",
       flags_to_go_on(config().output));
}

void Trainer::validate_if_due() {
  if (step_ > 0 && due(config().eval_every, step_)) validate();
}

/// Mean loss over every label of the held-out part, once for a step. A request to stop leaves it
/// undone; a resumed run makes up for it.
void Trainer::validate() {
  if (!wanted_programs(config()).evaluate || metrics_->valid_step() == step_) return;
  const EvalWindows windows(run_.data.tokens.held_out(), config().model.context);
  const std::int64_t batch = evaluation_batch(config());
  double sum = 0;
  for (std::int64_t first = 0; first < windows.count(); first += batch) {
    if ((cut_short_ = stopped())) return;
    execute(kEvaluateProgram, [&](BatchInputs& inputs) {
      windows.fill(first, batch, inputs.fill<std::int32_t>("ids"),
                   inputs.fill<std::int32_t>("labels"));
    });
    sum += crew_->executor().scalar(kEvaluateProgram, "loss_sum");
  }
  const double loss = sum / static_cast<double>(windows.num_labels());
  metrics_->valid(step_, loss);
  tell(&TrainCallback::on_valid, step_, loss);
}

void Trainer::write_sample() {
  GenerateOptions options;
  options.tokens = config().sample_tokens;
  options.seed = static_cast<std::uint64_t>(config().seed);
  const std::vector<std::int32_t> ids = generate(*crew_, run_.data.vocabulary, {}, options);
  tell(&TrainCallback::on_sample, step_, run_.data.vocabulary.decode(std::span(ids).subspan(1)));
}

void Trainer::write_profile() {
  if (recorder_->empty()) {
    tell(&TrainCallback::on_notice,
         text("no profile: it is of steps after ", Recorder::kWarmUp, " that warm up, and ",
              step_ - first_step(), " were done"));
  } else {
    tell(&TrainCallback::on_profile, config().profile, recorder_->write());
  }
  recorder_.reset();
}

/// A disk that takes no more lines does not end the run: they are kept until it does, or until a
/// save fails for want of them.
void Trainer::check_metrics() {
  const std::string problem = metrics_->flush();
  if (!problem.empty() && !metrics_late_)
    tell(&TrainCallback::on_notice,
         text(problem,
              "; training goes on, and its lines are kept in memory until they can be written"));
  metrics_late_ = !problem.empty();
}

/// In the background, where there is memory for it; training goes on whatever comes of it.
void Trainer::save_on_the_way() {
  settle(saver_->wait());  // one at a time
  if (const std::string problem = metrics_->sync(); !problem.empty())
    return settle(SaveResult{step_, "", problem});
  saver_->begin(checkpoint_record(run_, step_, samples()), crew_->states());
  crew_->forget_states();
  settle(saver_->finished());
}

/// The state at the end, unless it is saved: without it the run has not ended well.
void Trainer::save_and_wait() {
  settle(saver_->wait(), kMaxFailedSaves + 1);  // however it went, there is one more try
  SaveResult result{step_, "", metrics_->sync()};
  if (result.problem.empty() && saved_ == step_) return;
  if (result.problem.empty())
    result = saver_->save(checkpoint_record(run_, step_, samples()), crew_->states());
  crew_->forget_states();
  settle(result, 1);
}

/// Takes note of what became of a save; the run ends where `most` failed in a row.
void Trainer::settle(const std::optional<SaveResult>& result, std::int64_t most) {
  if (!result) return;
  for (const std::string& notice : result->notices) tell(&TrainCallback::on_notice, notice);
  if (result->problem.empty()) {
    saved_ = result->step;
    checkpoint_ = result->path;
    failed_saves_ = 0;
    return tell(&TrainCallback::on_save, saved_, checkpoint_);
  }
  const std::string what = text("step ", result->step, " is not saved: ", result->problem);
  if (++failed_saves_ < most)
    return tell(
        &TrainCallback::on_notice,
        text(what, "; training goes on, and a save is tried again when the next is due (failure ",
             failed_saves_, " of ", kMaxFailedSaves, " that end the run)"));
  fail(Fault::Resource, what,
       failed_saves_ == 1 ? "" : text("; it is failure ", failed_saves_, " in a row"),
       checkpoint_.empty() ? "; there is no checkpoint yet"
                           : text("; the last checkpoint is '", checkpoint_, "'"),
       "; then go on with ", flags_to_go_on(config().output));
}

std::int64_t Trainer::samples() const {
  std::int64_t out = 0;
  const std::span<const std::byte> bytes = crew_->state(kSamplesState);
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

Summary Trainer::summary() const {
  Summary out;
  const Plan& plan = crew_->plan();
  out.steps = step_;
  out.isa = isa_;
  out.skipped_steps = skipped_;
  out.train_loss = metrics_->train_loss();
  out.val_loss = metrics_->valid_loss();
  out.seconds = between(begin_, Clock::now());
  const std::int64_t tokens =
      (step_ - first_step()) * config().global_batch_size * config().model.context;
  out.tokens_per_s = tokens == 0 ? 0 : static_cast<double>(tokens) / step_seconds_;
  out.parameters = count_parameters(plan);
  out.planned_peak_bytes = plan.peak_bytes();
  out.lower_bound_bytes = plan.lower_bound_bytes();
  out.save_copy_bytes = save_copy_bytes(config(), plan);
  out.huge_page_bytes = memory_.huge_page_bytes;
  out.outside = memory_.outside;
  out.sent = sent_per_step(plan);
  out.peak_rss_bytes = peak_rss_bytes();
  if (runs_.contains(kTrainProgram)) out.measured_peak_bytes = measured_bytes_;
  return out;
}

}  // namespace

void follow(RunConfig config, Device& device, Communicator& world, const ExecutorOptions& options) {
  config.dump_dir.clear();  // the leader writes
  Plan plan = compile_programs(config, wanted_programs(config), device, world.rank()).plan;
  Crew(std::move(plan), device, &world, options).follow();
}

TrainResult train(PreparedRun run, Device& device, const TrainOptions& options) {
  return Trainer(std::move(run), device, options).run();
}

}  // namespace tessera
