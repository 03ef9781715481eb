#pragma once
/// Reverse-mode differentiation of the global graph, before any sharding.

#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

/// Adds the backward nodes of `loss` to its graph and returns, per parameter, the value of its node
/// grad(path).
///
/// In:      `loss` is a scalar float; `parameters` are states.
/// Out:     backward nodes have phase Backward and the block of the node whose operands they
///          differentiate. Each records what it is the cotangent of, and whether that is the whole
///          of it or one of several contributions, which are summed in the order nearest to the
///          loss first. A cotangent has its primal's dtype.
/// Errors:  an op on the path that has no gradient; the message names the node.
std::vector<Value> gradients(Value loss, const std::vector<Value>& parameters);

}  // namespace tessera
