#include "tessera/train/run_evaluations.h"

#include <algorithm>
#include <memory>

#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/programs.h"

namespace tessera {

bool RunEvaluations::stopped() const {
  return parts_.options.stop != nullptr && parts_.options.stop->load();
}

bool RunEvaluations::due(std::int64_t step, std::int64_t consumed) const {
  const std::int64_t every = parts_.run.config.eval_every;
  return step > 0 && ((every > 0 && step % every == 0) || epochs_.ended(consumed) > 0);
}

bool RunEvaluations::measure(const Samples& samples, Validation& measured) {
  return measure_samples(parts_.runs, samples, parts_.setup.evaluation_batch(), measured,
                         [&] { return stopped(); });
}

bool RunEvaluations::validate(std::int64_t step, std::int64_t consumed) {
  if (parts_.held_out == nullptr || parts_.metrics.valid_step() == step) return true;
  const std::int64_t epoch = epochs_.ended(consumed);
  const Task& task = parts_.setup.task();
  const bool judges = task.judges_validations || parts_.run.config.eval_every > 0;
  const std::unique_ptr<Judge> judge =
      epoch > 0 || judges ? epochs_.begin(*parts_.run.data) : nullptr;
  Validation measured(task.means, judge.get());
  if (!measure(*parts_.held_out, measured)) return false;
  const double loss = measured.loss();
  NamedMeans means = measured.means();
  if (!parts_.texts.score(step, *parts_.held_out, means)) return false;
  if (judges && judge) {
    NamedMeans scores;
    parts_.runs.group().run_alone([&] { scores = judge->scores(); });
    for (const auto& score : scores) {  // but for what is measured as well, as accuracy
      if (std::ranges::find(means, score.first, &NamedMeans::value_type::first) == means.end())
        means.push_back(score);
    }
  }
  if (epoch > 0) judge_epoch(epoch, step, measured, judge.get());
  parts_.metrics.valid(step, loss, means);
  parts_.saves.validated(step, loss);
  tell(&TrainCallback::on_valid, step, loss, means);
  return true;
}

void RunEvaluations::judge_epoch(std::int64_t epoch, std::int64_t step, const Validation& measured,
                                 const Judge* judge) {
  EvalRecord record;
  std::string problem;
  parts_.runs.group().run_alone(
      [&] { record = epochs_.record(epoch, step, measured, judge, parts_.output, problem); });
  if (!problem.empty()) tell(&TrainCallback::on_notice, problem);
  parts_.metrics.eval(record);
  tell(&TrainCallback::on_eval, record);
}

TestRecord RunEvaluations::take_weights(std::int64_t step) {
  TestRecord out;
  out.measured.step = step;
  const std::optional<BestSaved> best = parts_.saves.best();
  if (!best) return out;
  out.best = true;
  out.measured.step = best->step;
  if (best->step == step) return out;
  std::optional<Checkpoint> from;
  parts_.runs.group().run_alone(
      [&] {  // The base is the one that was trained on, wherever it lay when that was saved.
        const RunConfig& config = parts_.run.config;
        const std::string base = leaves_base_out(config) ? config.init_from : "";
        from.emplace(open_with_base(best->path, {.check = false, .at = base}));
      });
  parts_.runs.group().load_weights(*from);
  return out;
}

bool RunEvaluations::test(std::int64_t step) {
  if (!parts_.run.test) return true;
  const Dataset& data = *parts_.run.test;
  TestRecord record = take_weights(step);
  record.labelled = !data.unlabelled;
  const std::unique_ptr<Samples> samples =
      parts_.setup.task().valid_samples(data, test_choices(parts_.run.config));
  const std::unique_ptr<Judge> judge = epochs_.begin(data);
  Validation measured(parts_.setup.task().means, judge.get());
  if (!measure(*samples, measured)) return false;
  std::string problem;
  parts_.runs.group().run_alone(
      [&] { epochs_.test_record(measured, judge.get(), parts_.output, record, problem); });
  if (!problem.empty()) tell(&TrainCallback::on_notice, problem);
  if (record.labelled) parts_.metrics.test(record);
  tell(&TrainCallback::on_test, record);
  return true;
}

}  // namespace tessera
