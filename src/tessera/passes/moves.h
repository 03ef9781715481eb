#pragma once
/// The moves of a redistribution as nodes of a local graph.

#include "tessera/ir/builder.h"
#include "tessera/passes/redistribute.h"

namespace tessera {

/// Adds the nodes of a plan that brings `value` to `to`; between two reshapes if its moves are of a
/// split view. `like` gives block, phase, stage and place in the source.
///
/// Uneven: a collective joins or cuts chunks of one size, so axes that nest unevenly on a dim are
/// taken one after another, the minor first where shards are joined, the major first where they are
/// cut.
Value add_moves(Builder& builder, Value value, const Redistribution& plan, const Sharding& to,
                const Node& like);

/// Adds the copy of `value` to that memory, if it does not lie there.
Value add_copy(Builder& builder, Value value, Memory to, const Node& like);

}  // namespace tessera
