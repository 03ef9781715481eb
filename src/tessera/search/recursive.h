#pragma once
/// Recursive programming: quick, and without a proof.

#include "tessera/search/placement_problem.h"
#include "tessera/search/restrict.h"

namespace tessera {

/// One round for each axis of ranks, outermost first: all ops, by decreasing work, shard one factor
/// along it or none, whichever is cheapest given what was cut before and how their neighbours are
/// cut by now. On axes of two ranks that is MindSpore's double recursive programming. Decisions
/// that are not of ops (states, where values are read) then take their cheapest option.
/// Memory: an op keeps within `limits.bytes` as far as cuts of its own can.
Solution solve_recursively(const Graph& graph, PlacementProblem& problem,
                           const SolveLimits& limits);

/// The decisions of propagation (passes/propagate.h), as picks. An op that it spreads in a way that
/// no option describes (as an unfinished sum) takes the option that is cheapest beside the others.
Solution solve_by_propagation(const Graph& graph, const Strategy& strategy, const Machine& machine,
                              const PlacementProblem& problem);

}  // namespace tessera
