#pragma once
/// Puts a node `use(path)` between each state and the forward and backward nodes that read it: the
/// twin of `grad(path)`, the node in which the gradient of a parameter ends.
///
/// A state is stored in one way and read in another: ZeRO stores a part of a weight on each rank,
/// and each gathers the whole to compute with it. All that lies between the two is said of the use,
/// so that no other pass has to know what a state is.

#include <tuple>

#include "tessera/ir/gather_scope.h"
#include "tessera/ir/graph.h"

namespace tessera {

/// Readers of a state for which this is equal share one use of it: phase, chunk of a pipeline, op,
/// and whether they run before the loop (nodes_before_loop); what the scope does not tell apart is
/// left out.
using UseKey = std::tuple<Phase, int, NodeId, bool>;
UseKey use_key(const Graph& graph, NodeId reader, GatherScope scope, bool before_loop = false);

/// The graph with the uses of each state that the scope asks for, each before the first node that
/// reads it. The update reads states as they are stored. Uses that are there stay.
Graph add_uses(const Graph& graph, GatherScope scope = GatherScope::Block);

}  // namespace tessera
