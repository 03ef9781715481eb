#pragma once
/// The evaluations of a run as its loop sees them: validations, what is predicted after each epoch,
/// and the test at the end.

#include <cstdint>
#include <string>

#include "tessera/train/checkpoint_schedule.h"
#include "tessera/train/epoch_judge.h"
#include "tessera/train/measured_runs.h"
#include "tessera/train/prepare.h"
#include "tessera/train/run_setup.h"
#include "tessera/train/run_texts.h"

namespace tessera {

/// On the leader of a group whose plan has the program "evaluate", where anything is evaluated.
class RunEvaluations {
 public:
  /// What a run evaluates with; all outlive it.
  struct Parts {
    const PreparedRun& run;
    const RunSetup& setup;
    std::int64_t epoch = 0;   // samples that train
    const Samples* held_out;  // nullptr: nothing is validated
    MeasuredRuns& runs;
    RunTexts& texts;
    CheckpointSchedule& saves;
    MetricsFile& metrics;
    const TrainOptions& options;
    const std::string& output;  // wherever the working folder is by now
  };
  explicit RunEvaluations(const Parts& parts)
      : parts_(parts), epochs_(parts.setup.config, parts.setup.task(), parts.epoch) {}

  /// A validation follows this step, after which so many samples were consumed.
  bool due(std::int64_t step, std::int64_t consumed) const;

  // Each returns false where a request to stop left it undone; a resumed run makes up for it.

  /// The task's means over everything that counts in the held-out part, once for a step; where an
  /// epoch has ended, its predictions are judged.
  bool validate(std::int64_t step, std::int64_t consumed);
  /// What the model predicts of the test data, with the weights of the best checkpoint where one is
  /// kept, else with those that `step`, the last, has left: nothing is trained after it. To be
  /// called once the state at the end is saved. Errors: as of RankGroup::load_weights.
  bool test(std::int64_t step);

 private:
  bool stopped() const;
  /// False: cut short.
  bool measure(const Samples& samples, Validation& measured);
  void judge_epoch(std::int64_t epoch, std::int64_t step, const Validation& measured,
                   const Judge* judge);
  /// The step of the weights that are tested, and whether they are the best.
  TestRecord take_weights(std::int64_t step);

  template <typename... Args>
  void tell(void (TrainCallback::*what)(Args...), const std::type_identity_t<Args>&... args) const {
    tessera::tell(parts_.options.callbacks, what, args...);
  }

  Parts parts_;
  EpochJudge epochs_;
};

}  // namespace tessera
