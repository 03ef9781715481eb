#pragma once
/// Graphs of decisions for a solver outside: tools/golden/placements.py.

#include "tessera/search/decision_graph.h"

namespace tessera::test {

/// As JSON: {"decisions": [{"name", "costs", "bytes"}], "links": [{"from",
/// "to", "costs"}]}; null is a cost of kNever.
std::string to_json(const DecisionGraph& graph);

}  // namespace tessera::test
