#pragma once
/// Gives every value of the graph a placement.

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"

namespace tessera {

/// Today over the time axis alone: what is sharded on it can be neither gathered nor moved, what is
/// partial on it accumulates. So placements follow from the batch inputs: a node takes the factor
/// that an operand brings.
///
/// In:      Form::Global.
/// Out:     Form::Placed: every result has a placement on the strategy's mesh.
/// Errors:  a node whose rule does not let the batch be cut, or that reads a sum over micro-batches
/// inside one
///          ("needs a sum over mb"); a batch size that the micro-batches do not divide. The message
///          names the node.
Graph propagate(const Graph& graph, const Strategy& strategy);

}  // namespace tessera
