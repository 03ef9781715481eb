#pragma once
/// From the regions of one program to ready calls over an arena.

#include <string>
#include <vector>

#include "tessera/passes/partition.h"
#include "tessera/plan/plan.h"
#include "tessera/plan/state_section.h"
#include "tessera/plan/timeline.h"

namespace tessera {

/// In:      four regions in Form::Local, as partition made them (fused or not).
/// Out:     calls in the order of their times; values placed in the work section: views share their
/// operand's buffer,
///          ops work in place where their column allows it and the operand is read by nobody after,
///          a state's next value is written into the state where that is safe and copied at the end
///          where it is not. Offsets of shards are those of `rank`.
ProgramPlan lower(const std::string& name, const std::vector<Region>& regions, const Timeline& time,
                  StateSection& states, Device& device, std::uint64_t seed, int rank = 0);

}  // namespace tessera
