#pragma once
/// A training loop of a program's own: the program says which batch is next, and all devices, each
/// a thread, run its step.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/training.h"
#include "tessera/train/prepare.h"
#include "tessera/train/run_setup.h"
#include "tessera/user_code/led_ranks.h"
#include "tessera/user_code/own_run.h"

namespace tessera {

/// Samples of one step, by number.
struct SampleBatch {
  std::int64_t first = 0, count = 0;
};

class OwnLoop {
 public:
  /// Compiles the programs and begins with the weights that the model has, first values or others.
  /// Errors: as of prepare_run; Fault::Usage: this process was launched as one of several; a run is
  /// to be resumed.
  OwnLoop(const AskedTraining& asked, Console& console, OwnFunctions functions);
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;

  const RunConfig& config() const { return prepared_->config; }
  /// The steps that begin in this epoch, counted from 1.
  std::vector<SampleBatch> train_batches(std::int64_t epoch) const;
  StepRecord backward(const SampleBatch& batch);
  /// The learning rate of later steps; kScheduledRate: the schedule's again. Errors: Fault::Usage:
  /// it is none.
  void set_lr(double lr);
  EvalPrediction gather();
  void save_pretrained(const std::string& folder);

 private:
  OwnFunctions keeping_predictions(OwnFunctions functions);

  OwnRun run_;
  std::optional<PreparedRun> prepared_;
  std::optional<RunSetup> setup_;
  std::unique_ptr<Samples> samples_;
  std::int64_t step_ = 0;
  EvalPrediction gathered_;

  std::optional<LedRanks> ranks_;
};

}  // namespace tessera
