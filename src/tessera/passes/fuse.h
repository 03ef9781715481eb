#pragma once
/// Joins nodes into `fused` nodes, which a device runs tile by tile in cache.

#include "tessera/passes/program.h"

namespace tessera {

/// Elementwise ops and ops that work row by row (OpDef::row_dims) are joined with their operands,
/// where these are computed over the same shape, in the same phase and memory, and no path from one
/// to the other leaves the group. Results that are read outside stay results. A group takes the
/// place of its last node; what reads it comes after that. Scalars are left alone. Where something
/// is sent to another stage, no group reaches across a message that is waited for. Nor does one make
/// a block wait for what another makes later. A group has at most 16 nodes and 12 operands.
///
/// In, out: Form::Global or Form::Local.
Graph fuse(const Graph& graph);

/// copy_beside (absorb.h), then add_onto and fuse for every region; what is left over is simplified
/// away.
Program fuse(Program program);

}  // namespace tessera
