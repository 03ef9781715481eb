#pragma once
/// The room `passes`: graph in, graph out. plan/compile.cpp has their order on one page.
/// For: one idea each: derivatives, placements, regions, overlap; tests are pairs of graphs as
/// text.
/// Not for: addresses and calls (plan).
/// Rejected: deciding all placements at once by default: propagation from a few pins is fast and
/// can be explained, and a bad decision costs time, never correctness (room `search` decides
/// together). A table of cases for redistribution: it is a shortest path over moves, which a test
/// can prove. Hand-written communication in gradients.
///
/// Propagate: gives every value of the graph a placement, starting from the pins of a strategy.

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Each node, in order, gets the placement that needs the least communication, given the placements
/// of its operands and those wanted by its readers (passes/decide.h). If a node needs a value in
/// another placement, a `reshard` node is inserted; nodes that need it in the same placement share
/// one, for forward and backward each. An op whose `stat` factor is sharded is replaced by its
/// expansion.
///
/// In:      Form::Global, states read through uses (passes/add_uses.h). A use is placed as its
///          readers need it; one that needs no other placement than the state has is left out.
/// Out:     Form::Placed: every result has a placement on the strategy's mesh, as the node's factor
///          rule gives it from those of the operands; states have home and use.
/// Errors:  a node whose rule does not let the batch be cut into micro-batches, or that reads a sum
///          over micro-batches inside one ("needs a sum over mb"); a batch size that the
///          micro-batches do not divide; pins that fit no shape, or that a reshape cannot carry
///          on: every reason at once. The message names node, dim, size and axis.
Graph propagate(const Graph& graph, const Strategy& strategy, const Machine& machine = {});

}  // namespace tessera
