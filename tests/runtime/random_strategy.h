#pragma once
/// Random ways to spread a random graph over a random mesh.

#include <cstdint>
#include <string>

#include "runtime/random_graph.h"
#include "tessera/ir/strategy.h"

namespace tessera::fuzz {

struct RandomStrategy {
  Graph graph;  // with names that pins speak of
  Strategy strategy;
  bool mixes_rows = false;  // as of the graph
};

/// One to three axes of sizes 2, 3 and 4, with and without micro-batches; what lies along them is
/// drawn for every batch dim, state and named value. Much of it is illegal. What is drawn for a
/// node follows from its place, so that a beginning of the graph is spread in the same way.
RandomStrategy random_strategy(std::uint64_t seed, const RandomGraph& graph);

/// A strategy in words, as a failure is reported.
std::string describe(const Strategy& strategy);

}  // namespace tessera::fuzz
