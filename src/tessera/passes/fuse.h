#pragma once
/// Joins elementwise nodes into `fused` nodes, which a device runs tile by tile in cache.

#include "tessera/passes/program.h"

namespace tessera {

/// A node joins the group of an operand of the same shape if the group's results are read by nobody
/// before it; the group takes the place of its last node. Results that are read outside stay
/// results. Scalars are left alone, and so are nodes that differ in phase.
///
/// In, out: Form::Global or Form::Local.
Graph fuse(const Graph& graph);

/// The same for every region; what is left over is simplified away.
Program fuse(Program program);

}  // namespace tessera
