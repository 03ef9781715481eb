#pragma once
/// The room `train`: everything that a training run does, from its data to its last checkpoint.
/// For: one rank that leads, and others that follow, so that no decision can differ among ranks.
/// Not for: flags (config), pages and charts (report), processes (launch).
/// Rejected: a report below the training: a chart in the trainer does not compile. Ranks that
/// decide for themselves.
///
/// The training loop: next batch, step, metrics, validation, samples, checkpoints.

#include <atomic>
#include <vector>

#include "tessera/checkpoint/checkpoint_calls.h"
#include "tessera/comm/communicator.h"
#include "tessera/runtime/backend.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/metrics.h"
#include "tessera/train/prepare.h"

namespace tessera {

struct TrainOptions {
  std::vector<TrainCallback*> callbacks = {};
  /// Set from outside, by a signal handler: the step at hand is finished and saved, then train
  /// returns.
  const std::atomic<bool>* stop = nullptr;
  FileCalls calls = {};           // of saves and metrics; tests let them fail
  Communicator* world = nullptr;  // where there are several devices; this is its rank 0
  bool tells_ranks = false;       // of every step, so that callbacks of follow() hear of it
  EngineOptions engine = {};
  bool saves = true;  // false: what was trained is lost, as after a measurement
  /// Set from outside, and cleared by train: what the step at hand leaves is saved.
  std::atomic<bool>* save = nullptr;
  /// Set from outside, and made kRateAsItIs again by train: RankGroup::set_rate.
  std::atomic<double>* lr = nullptr;
  /// Set by whoever gives samples or scores, before it throws: what was trained is saved first.
  const std::atomic<bool>* failed = nullptr;
};

enum class Ending {
  Finished,  // all steps are done
  Interval,  // --exit-interval
  Stopped,   // on request, before the last step
};

struct TrainResult {
  Ending ending = Ending::Finished;
  Summary summary;
};

/// Trains as `run` says and writes metrics.jsonl, summary.json, config.toml and checkpoints to
/// OUTPUT. config.toml has the values that were given; derived ones are computed again by a run
/// that reads it. Checkpoints record the complete configuration. A resumed run is bit for bit the
/// one that was never interrupted.
///
/// On several ranks each writes its share of a checkpoint into the one folder, which all must see.
/// A run that goes on from a checkpoint of another folder saves the state in its own, at its end at
/// the latest. A save that fails leaves the run and earlier checkpoints as they are: a notice says
/// why, and the next save tries again.
///
/// Errors: Fault::Resource: OUTPUT cannot be written, belongs to a running process, was written by
///         one since `run` was prepared, or is not seen by a rank; three saves in a row, or the one
///         at the end, failed.
///         Fault::Checkpoint: damage, or other tensors than the model's.
///         Fault::Numerics: three steps in a row were inf or nan; what they leave is saved.
TrainResult train(PreparedRun run, const Backend& backend, const TrainOptions& options = {});

/// For the other ranks, while rank 0 trains. `config` is that of its PreparedRun; with
/// options.calls this rank writes its share of checkpoints. Callbacks hear of steps alone, where
/// rank 0 tells them (TrainOptions::tells_ranks).
void follow(const RunConfig& config, const Backend& backend, Communicator& world,
            const TrainOptions& options = {});

}  // namespace tessera
