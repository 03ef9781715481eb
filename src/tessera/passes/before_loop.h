#pragma once
/// Nodes that need the whole batch and can run before the first micro-batch.

#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Per node: true for nodes that reduce the rows of batch inputs and depend on no state (the token
/// count), for whole_batch, and for what these read: they see the whole batch.
std::vector<bool> nodes_before_loop(const Graph& graph);

}  // namespace tessera
