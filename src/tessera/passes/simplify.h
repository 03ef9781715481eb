#pragma once
/// Removes what need not be computed: dead nodes, common subexpressions, constants of constants.

#include "tessera/ir/graph.h"

namespace tessera {

/// In, out: any form; what outputs compute does not change.
/// Common subexpressions are merged within a phase, and never with a recomputed copy: that would
/// undo the recompute. Scalars of constants are folded (f32, f64, i32); larger constants are never
/// made. Named values and grad nodes stay.
Graph simplify(const Graph& graph);

}  // namespace tessera
