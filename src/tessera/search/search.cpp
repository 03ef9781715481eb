#include "tessera/search/search.h"

#include <chrono>

#include "tessera/search/placement_problem.h"
#include "tessera/search/recursive.h"

namespace tessera {

std::string_view to_text(SearchMode mode) {
  switch (mode) {
    case SearchMode::DynamicProgramming: return "dynamic_programming";
    case SearchMode::RecursiveProgramming: return "recursive_programming";
    default: return "sharding_propagation";
  }
}

Searched search_placements(const Graph& step, const Strategy& strategy, SearchMode mode,
                           const Machine& machine, const SearchLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  PlacementProblem problem(step, strategy, machine);
  SolveLimits solving;
  solving.table = limits.table;
  solving.bytes = limits.bytes;
  Solution found;
  Searched out;
  if (mode == SearchMode::DynamicProgramming) {
    found = solve(problem.decisions(), solving);
    out.report.bound = 1e-12 * found.bound;
    out.report.gap = found.gap();
  } else if (mode == SearchMode::RecursiveProgramming) {
    found = solve_recursively(step, problem, solving);
  } else {
    found = solve_by_propagation(step, strategy, machine, problem);
  }
  const bool keeps = found.bytes <= limits.bytes;
  require(found.cost < kNever || !keeps, to_text(mode), " found no placements that the pins allow");
  require(keeps, to_text(mode), " found no placements within ",
          static_cast<std::int64_t>(limits.bytes), " bytes per device; the least it found is ",
          static_cast<std::int64_t>(found.bytes), ": allow more, or use more devices");
  out.strategy = mode == SearchMode::ShardingPropagation ? strategy : problem.pinned(found.picks);
  SearchReport& report = out.report;
  report.step_seconds = 1e-12 * found.cost;
  report.bytes = found.bytes;
  for (NodeId id = 0; id < step.size(); ++id) report.ops += problem.decision_of(id) >= 0;
  report.classes = problem.classes();
  report.options = problem.options();
  report.decisions = problem.decisions().size();
  report.folded = found.folded;
  report.width = found.width;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace tessera
