#pragma once
/// Training in a program of one's own, as `tessera train` does it.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/planner/plan_file.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/output_check.h"
#include "tessera/train/trainer.h"

namespace tessera {

/// What a run shows while it goes.
struct RunDisplay : TrainCallback {
  /// Ends a line that has begun: the run is over, or fails.
  virtual void finish() {}
};

/// What the flags of `tessera train`, or of another command that trains, say.
struct AskedTraining {
  RunConfig config;
  Problems problems = {};                     // of the flags
  std::vector<std::string> notices = {};      // told at the begin of the run
  bool devices_given = true;                  // by a flag
  bool help = false;                          // the flags are printed, and nothing is done
  bool check = false;                         // the passes of the compiler are checked first
  bool automatic = false;                     // the planner chooses what nobody told
  double memory_margin = 0;                   // with that: percent of the cap that stay free
  OtherRun other_run = OtherRun::Refuse;      // that the output holds
  std::optional<PlanFile> plan = {};          // of --plan
  std::string plan_path = {};                 // the file of that
  std::string secret_file = {};               // of --secret-file
  std::atomic<bool>* save = nullptr;          // TrainOptions::save
  std::atomic<double>* lr = nullptr;          // TrainOptions::lr
  const std::atomic<bool>* failed = nullptr;  // TrainOptions::failed
  std::shared_ptr<const void> claim = {};     // keeps others out of a new output folder
  /// Of the rank that leads, where the screen shows the run: without, that of `tessera train`.
  std::function<std::unique_ptr<RunDisplay>(const RunConfig& config, Console& console)> display =
      {};
  /// What follows a run that ended, on the rank that leads: without, a line about its end.
  std::function<void(const TrainResult& result, const RunConfig& config, Console& console)> at_end =
      {};
};
AskedTraining read_training_flags(const Arguments& arguments, const OwnFamilies& families = {});

/// Trains as `config` says; the exit code of docs/reference/errors.md. Errors are printed on
/// `console`. Where a launcher started this process it is one of the run's ranks, all of which call
/// this with the same configuration; else the devices are threads. Signals save and stop.
///
/// `callbacks` are told of the run; there is no display of its own. Where ranks are processes,
/// those of the others hear of steps (on_step) and of nothing else.
int run_training(const RunConfig& config, Console& console,
                 const std::vector<TrainCallback*>& callbacks);
/// As was asked for; without callbacks the screen shows the run.
int run_training(const AskedTraining& asked, Console& console,
                 const std::vector<TrainCallback*>& callbacks = {});

/// A run that came to its end.
struct TrainedRun {
  TrainResult result;   // of the rank that leads; of others its ending
  RunConfig config;     // complete
  int rank = 0;         // of this process, where it was launched
  std::string summary;  // to_json() of that of the rank that leads, on every rank
};

/// For a program that is no command: as run_training, but what went wrong is thrown, on every rank,
/// and no signal is touched. Whoever sets `stop`, a callback too, has the run finish its step and
/// save. Devices are threads of this process, or the ranks of which a launcher started it as one,
/// where all call this alike. `callbacks` may take as long as they like; with several devices they
/// are called in threads of their own, one at a time. Beside them `console` of rank 0 shows the run,
/// at times from threads of its own; other ranks hear of steps alone.
///
/// Errors: those of the run; Fault::Peer: another rank died, by name. A rank that hangs ends the
///         process, as nothing else could end it.
TrainedRun train_here(const AskedTraining& asked, Console& console,
                      const std::vector<TrainCallback*>& callbacks, std::atomic<bool>& stop);

/// Trains on threads of this process, as run_training. Without `saves` it loses what it learned: a
/// measurement.
int measure_training(const RunConfig& config, Console& console, TrainCallback& callback,
                     bool saves = false);

}  // namespace tessera
