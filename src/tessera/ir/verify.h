#pragma once
/// Verifies what a graph's form promises. Passes are held to it after each step of the compiler.

#include "tessera/ir/graph.h"

namespace tessera {

/// Every form: values are defined before they are used; attributes and result types are those of
///             the op (its type rule is run again); paths of states, names of batch inputs and
///             outputs are unique; a state has at most one next value, of its own type.
/// Global:     no placements.
/// Placed:     every value has a placement, whose axes are in the mesh and used once.
/// Local:      as Placed, and types are the local shapes of the logical ones. Without a mesh
///             placements may be absent.
/// Errors:     a broken promise is a bug of ours (`Broken`), named by its node.

void verify(const Graph& graph);

}  // namespace tessera
