#pragma once
/// What a run tells of its plan: at its start, and in its summary.

#include "tessera/train/callbacks.h"
#include "tessera/train/metrics.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_requirements.h"

namespace tessera {

/// All but the first step and the best product.
RunStart run_start(const RunSetup& setup, const Compiled& compiled, const RunRequirements& facts);

/// Parameters, FLOPs, bytes that are planned and sent, and what was done to take so much.
void add_plan(Summary& summary, const RunSetup& setup, const Plan& plan,
              const RunRequirements& facts);

}  // namespace tessera
