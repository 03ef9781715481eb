#pragma once
/// Training steps on batches without data: for comparisons and times.

#include <cstdint>
#include <functional>

#include "tessera/train/rank_group.h"
#include "tessera/train/run_setup.h"

namespace tessera {

/// Runs so many training steps from fresh states on random batches, the same on any mesh, and
/// stops the group, whose plan has the program of training steps. Rank 0 calls
/// `after_step(seconds)` behind each; the others follow.
///
/// Floats of a batch are from -1 to 1. Samples have unequal numbers of labels: a mean over samples
/// would be another number than one over labels.
void run_random_steps(RankGroup& group, const RunSetup& setup, std::int64_t steps,
                      const std::function<void(double seconds)>& after_step);

}  // namespace tessera
