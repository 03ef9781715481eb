#pragma once
/// Training in a program of one's own, as `tessera train` does it.

#include <vector>

#include "tessera/apps/console.h"
#include "tessera/train/callbacks.h"
#include "tessera/train/config.h"

namespace tessera {

/// Trains as `config` says, and returns the exit code of docs/errors.md; errors are printed on
/// `console`. Where a launcher started this process it is one of the run's ranks, all of which call
/// this with the same configuration; else the devices are threads. Signals save and stop.
///
/// `callbacks` are told of the run; there is no display of its own. Where ranks are processes,
/// those of the others hear of steps (on_step, without the means of the task) and of nothing else.
int run_training(const RunConfig& config, Console& console,
                 const std::vector<TrainCallback*>& callbacks);

/// Trains on threads of this process, as run_training. Without `saves` it loses what it learned: a
/// measurement.
int measure_training(const RunConfig& config, Console& console, TrainCallback& callback,
                     bool saves = false);

}  // namespace tessera
