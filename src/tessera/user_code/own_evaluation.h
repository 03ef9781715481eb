#pragma once
/// What a model predicts of a program's samples, and what that is worth, without training.

#include <atomic>

#include "tessera/apps/training.h"
#include "tessera/user_code/own_run.h"

namespace tessera {

/// Measures all of functions.datasets().valid with the weights that the configuration begins with,
/// on its devices. functions.metrics sees the predictions. Nothing is written.
///
/// `stop`, set from outside, ends it after the batch at hand; then nothing is scored.
/// Errors: as of prepare_run; Fault::Usage: a launcher started this process as one of several
/// ranks.
struct OwnEvaluated {
  bool stopped = false;
  std::int64_t samples = 0;
  double loss = 0;
  NamedMeans scores = {};
};
OwnEvaluated evaluate_own(const AskedTraining& asked, Console& console, OwnFunctions functions,
                          const std::atomic<bool>& stop);

}  // namespace tessera
