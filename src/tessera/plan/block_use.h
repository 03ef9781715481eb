#pragma once
/// Bytes that the blocks of a model keep from forward for backward, and work that backward repeats.

#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/plan/values.h"

namespace tessera {

/// The uses of the blocks of `program`, whose calls are known by now, in the order of forward. A
/// value in another's memory, as a view, is counted once, for the block that made it; a value from
/// another stage, for the first block that reads it.
std::vector<BlockUse> block_uses(const std::vector<Region>& regions, const ProgramValues& values,
                                 const ProgramPlan& program);

}  // namespace tessera
