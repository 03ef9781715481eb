#include "tessera/user_code/own_evaluation.h"

#include <optional>
#include <string_view>
#include <utility>

#include "tessera/apps/instruction_set.h"
#include "tessera/data/dataset.h"
#include "tessera/launch/ranks.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/train/measured_runs.h"
#include "tessera/train/prepare.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_setup.h"
#include "tessera/train/validation.h"

namespace tessera {

namespace {

/// No folder of a run is written, and what the flags say of training does nothing.
RunConfig of_evaluation(RunConfig config) {
  config.output = "unwritten";
  config.resume = "none";
  config.profile.clear();
  config.epochs = config.steps = config.eval_every = config.eval_iters = 0;
  config.eval_at_end = true;
  config.keep_best = false;
  if (config.held_out == 0) config.held_out = RunConfig().held_out;
  return config;
}

/// One evaluation: what is to be measured, and how.
class OwnEvaluation {
 public:
  OwnEvaluation(const PreparedRun& run, const std::atomic<bool>& stop)
      : run_(run), stop_(stop), setup_(run.config, run.task) {}

  OwnEvaluated measured(Console& console) {
    // Without a training step no parameter has a first value.
    const bool loads = (run_.init || run_.pretrained) && run_.anew.empty();
    if (!loads || !measure(console, /*init=*/false)) measure(console, /*init=*/true);
    return std::move(out_);
  }

 private:
  /// False: the weights lack some, whose first values are needed.
  bool measure(Console& console, bool init) {
    bool done = true;
    on_ranks(run_.config, nullptr, console, [&](Communicator* world, const Backend& backend) {
      const int rank = world == nullptr ? 0 : world->rank();
      const WantedPrograms wanted{.train = init, .evaluate = true, .texts = 0};
      RankGroup group(compile_programs(setup_, wanted, backend, rank).plan, backend, world, kFast);
      if (rank > 0) return group.follow();
      if (init) group.run(kInitProgram);
      const std::string lacking = load(group);
      done = init || lacking.empty();
      if (done && !lacking.empty()) console.err << "notice: " << lacking << "\n";
      if (done) measure_with(group);
      group.stop();
    });
    return done;
  }

  std::string load(RankGroup& group) const {
    if (run_.init) return group.load_weights(*run_.init, run_.anew);
    if (!run_.pretrained) return "";
    const std::string lacking = group.load_weights(*run_.pretrained, run_.anew);
    return run_.pretrained->parameters().empty() ? "there are no weights" : lacking;
  }

  void measure_with(RankGroup& group) {
    const Task& task = setup_.task();
    const auto samples = task.valid_samples(*run_.data, valid_choices(run_.config));
    const auto judge = task.judge ? task.judge(*run_.data) : nullptr;
    Validation measured(task.means, judge.get());
    MeasuredRuns runs(group);
    out_.stopped = !measure_samples(runs, *samples, setup_.evaluation_batch(), measured,
                                    [&] { return stop_.load(); });
    if (out_.stopped) return;
    out_.samples = samples->size();
    out_.loss = measured.loss();
    if (judge) group.run_alone([&] { out_.scores = judge->scores(); });
  }

  const PreparedRun& run_;
  const std::atomic<bool>& stop_;
  RunSetup setup_;
  OwnEvaluated out_;
};

}  // namespace

OwnEvaluated evaluate_own(const AskedTraining& asked, Console& console, OwnFunctions functions,
                          const std::atomic<bool>& stop) {
  Problems problems = asked.problems;
  functions.counts_classes = false;  // the weights have as many as they were trained for
  const OwnRun own(of_evaluation(asked.config), std::move(functions));
  RunConfig open = own.config();
  require(
      launched_as(open.parallel.devices == 1 ? 0 : open.parallel.devices).how == Launched::Alone,
      "this process was started as one of several ranks, which only the command can be; start it ",
      "alone, and give --devices");
  agree_on_choices(open, nullptr, problems);
  const std::optional<PreparedRun> run = prepare_run(std::move(open), problems);
  problems.raise();
  for (const std::string& notice : run->notices)
    if (notice.find(run->config.output) == std::string::npos)  // there is none
      console.err << "notice: " << notice << "\n";
  return OwnEvaluation(*run, stop).measured(console);
}

}  // namespace tessera
