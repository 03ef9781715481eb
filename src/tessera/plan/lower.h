#pragma once
/// Lowering: from the regions of one program to a list of calls with addresses.

#include <string>

#include "tessera/passes/program.h"
#include "tessera/plan/plan.h"
#include "tessera/plan/state_section.h"
#include "tessera/plan/timeline.h"

namespace tessera {

struct LowerOptions {
  std::uint64_t seed = 1;      // of random ops
  int rank = 0;                // whose shards
  bool shares_buffers = true;  // false: no result lies in the buffer of an operand
  bool exact_layout = true;    // as of plan_memory()
};

/// In:      regions in Form::Local, as partition made them (fused or not).
/// Out:     calls in the order of their times; values placed in the work section: where buffers are
///          shared, views lie in their operand's, and ops work in place where their column allows
///          it and the operand is read by nobody after. A state's next value is written into the
///          state where that is safe and copied at the end where it is not.
ProgramPlan lower(const std::string& name, const Program& program, const Timeline& time,
                  StateSection& states, Device& device, const LowerOptions& options);

}  // namespace tessera
