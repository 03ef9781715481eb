#include "tessera/plan/plan.h"

#include <algorithm>

namespace tessera {

const ProgramPlan& Plan::program(std::string_view name) const {
  for (const ProgramPlan& program : programs) {
    if (program.name == name) return program;
  }
  throw Broken(text("the plan has no program '", name, "'"));
}

const StatePlan* Plan::find_state(std::string_view path) const {
  for (const StatePlan& state : states) {
    if (state.state.path == path) return &state;
  }
  return nullptr;
}

std::int64_t Plan::work_bytes() const {
  std::int64_t most = 0;
  for (const ProgramPlan& program : programs) most = std::max(most, program.work_bytes);
  return most;
}

std::int64_t Plan::lower_bound_bytes() const {
  std::int64_t most = 0;
  for (const ProgramPlan& program : programs) most = std::max(most, program.lower_bound_bytes);
  return state_bytes + most;
}

}  // namespace tessera
