#pragma once
/// Lowering: from the regions of one program to a list of calls with addresses.

#include <string>

#include "tessera/passes/program.h"
#include "tessera/plan/plan.h"
#include "tessera/plan/state_section.h"
#include "tessera/plan/timeline.h"

namespace tessera {

/// In:      regions in Form::Local, as partition made them (fused or not).
/// Out:     calls in the order of their times; values placed in the work section: views share their
///          operand's buffer, ops work in place where their column allows it and the operand is
///          read by nobody after, a state's next value is written into the state where that is safe
///          and copied at the end where it is not. Offsets of shards are those of `rank`.
ProgramPlan lower(const std::string& name, const Program& program, const Timeline& time,
                  StateSection& states, Device& device, std::uint64_t seed, int rank = 0);

}  // namespace tessera
