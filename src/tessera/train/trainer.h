#pragma once
/// The loop: next batch, step, metrics, validation, samples, checkpoints.

#include <atomic>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/device/device.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/checkpoint_calls.h"
#include "tessera/train/metrics.h"
#include "tessera/train/prepare.h"

namespace tessera {

struct TrainOptions {
  std::vector<TrainCallback*> callbacks;
  /// Set from outside, by a signal handler: the step at hand is finished and saved, then train
  /// returns.
  const std::atomic<bool>* stop = nullptr;
  FileCalls calls = {};           // of saves and metrics; tests let them fail
  Communicator* world = nullptr;  // where there are several devices; this is its rank 0
  ExecutorOptions executor = {};
};

enum class Ending {
  Finished,  // all steps are done
  Interval,  // --exit-interval
  Stopped,   // asked to, before the last step
};

struct TrainResult {
  Ending ending = Ending::Finished;
  Summary summary;
};

/// Trains as `run` says and leaves in OUTPUT: metrics.jsonl, summary.json, config.toml and
/// checkpoints. config.toml says what was told, so that what is derived follows the fields that a
/// later run changes; checkpoints record what came of it. A resumed run is, bit by bit, the one
/// that was never interrupted.
///
/// A save that fails leaves the run and the checkpoints before it alone: a notice says why, and the
/// next save is tried as if nothing had been.
///
/// Errors: Fault::Resource: OUTPUT cannot be written, belongs to a running process, or was
///         written by one since `run` was prepared; three saves in a row, or the one at the end,
///         failed.
///         Fault::Checkpoint: damage, or other tensors than the model's.
///         Fault::Numerics: three steps in a row were inf or nan; what they leave is saved.
TrainResult train(PreparedRun run, Device& device, const TrainOptions& options = {});

/// What ranks but 0 do while rank 0 trains: `config` is that of its PreparedRun.
void follow(RunConfig config, Device& device, Communicator& world,
            const ExecutorOptions& options = {});

}  // namespace tessera
