#pragma once
/// A loss that compares the samples of a batch, run in micro-batches: what it compares is computed
/// before the first of them, for all.

#include "tessera/ir/graph.h"

namespace tessera {

/// With micro-batches, what `whole_batch` reads comes from copies of the forward nodes that make
/// it, which run before the loop, on the whole batch, and keep nothing for backward. The loss on
/// them and its gradient follow there; the loop reads that gradient, a micro-batch at a time. So
/// the numbers are those of one micro-batch, for one more forward: GradCache (Gao et al. 2021,
/// arXiv 2101.06983). A forward that the loop has no use for runs there alone.
///
/// In, out: Form::Global, before recompute and add_uses. Without micro-batches or `whole_batch` it
/// is the same graph.
Graph preview(const Graph& graph, const Mesh& mesh);
/// It is another one.
bool has_preview(const Graph& graph, const Mesh& mesh);

}  // namespace tessera
