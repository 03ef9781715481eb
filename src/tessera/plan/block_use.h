#pragma once
/// What the blocks of a model leave from forward for backward, and what backward computes again.

#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/plan/values.h"

namespace tessera {

/// Of the blocks of `program`, whose calls are there, in the order of forward. A value that lies in
/// another's memory, as a view does, is counted once, for the block that made it; what
/// comes from another stage, for the first that reads it.
std::vector<BlockUse> block_uses(const std::vector<Region>& regions, const ProgramValues& values,
                                 const ProgramPlan& program);

}  // namespace tessera
