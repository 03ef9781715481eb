#pragma once
/// A graph of decisions of which some options are left out.

#include "tessera/search/solve.h"

namespace tessera {

/// The options that each decision may take, in order; empty: all.
using Allowed = std::vector<std::vector<int>>;

/// The graph without the others.
DecisionGraph restricted(const DecisionGraph& graph, const Allowed& allowed);

/// The cheapest picks among those that are allowed.
Solution solve_restricted(const DecisionGraph& graph, const Allowed& allowed,
                          const SolveLimits& limits = {});

}  // namespace tessera
