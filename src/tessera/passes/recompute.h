#pragma once
/// Recomputing (activation checkpointing): backward computes again what forward has not kept for
/// it. That costs time and saves memory: of a block that is recomputed in full, forward keeps only
/// what came in, and the rest lives while the block's backward runs.

#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"

namespace tessera {

/// The backward nodes of a block read copies of its forward nodes, which stand before them and name
/// the originals (Node::remat_of), and so are spread over the mesh as those are. Copied is what the
/// pins, or else the model's marks, ask for; not what the update reads or what leaves the step, for
/// that is kept in any case.
///
/// Selective, Full: nor what another block reads.
/// Elementwise: only views and ops every dim of whose operands is one of the result too: no factor
/// is missing from result 0 (ir/factors.h), where backward has the operands in any case: it reads
/// them itself, or computes them again. So the copies keep nothing that would not be kept without
/// them. Another block may read such a value, but not another stage.
///
/// In:      Form::Global, before add_uses. No pass may merge equal nodes after it, but those of one
///          phase.
/// Out:     Form::Global; only copies have a mark, what they were made for. Passes keep it; an op
///          that is fused of several has that of the last.
Graph recompute(const Graph& graph, const std::vector<RecomputePin>& pins);

}  // namespace tessera
