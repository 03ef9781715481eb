#pragma once
/// Puts a node `use(path)` between each state and the forward and backward nodes that read it: the
/// twin of `grad(path)`, the node in which the gradient of a parameter ends.
///
/// A state is stored in one way and read in another: ZeRO stores a part of a weight on each rank,
/// and each gathers the whole to compute with it. All that lies between the two is said of the use,
/// so that no other pass has to know what a state is.

#include "tessera/ir/graph.h"

namespace tessera {

/// The graph with one use for each state and each phase and chunk of a pipeline that reads it. The
/// update reads states as they are stored. Uses that are there stay.
Graph add_uses(const Graph& graph);

}  // namespace tessera
