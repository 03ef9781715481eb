#pragma once
/// Gives every value of the graph a placement.

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"

namespace tessera {

/// What is pinned spreads: each node, in order, takes what costs least, given where its operands
/// lie and where its results are wanted (passes/decide.h). Where a value lies otherwise than a node
/// needs it, a `reshard` stands between; a value that several nodes need in one way is resharded
/// once, for forward and backward each. An op whose `stat` factor is sharded is expanded.
///
/// In:      Form::Global.
/// Out:     Form::Placed: every result has a placement on the strategy's mesh, as the node's factor
///          rule gives it from those of the operands; states have home and use.
/// Errors:  a node whose rule does not let the batch be cut into micro-batches, or that reads a sum
///          over micro-batches inside one ("needs a sum over mb"); a batch size that the
///          micro-batches do not divide; pins that fit no shape, or that a reshape cannot carry
///          on: every reason at once. The message names node, dim, size and axis.
Graph propagate(const Graph& graph, const Strategy& strategy);

}  // namespace tessera
