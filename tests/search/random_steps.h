#pragma once
/// Small steps made at random around one use of an op.

#include <random>

#include "ops/cases.h"
#include "tessera/ir/graph.h"

namespace tessera::test {

/// True for ops that forward passes have: others move values, or end the gradient of a parameter.
bool is_called(const OpDef& op);

/// A forward pass of at most `ops` ops (one, the loss, always), of which one is that of the row,
/// with the gradients of its parameters. Where the op has no gradient, parameters come behind it.
Graph step_around(const Case& c, int ops, std::mt19937& random);

/// A forward pass of about so many ops without a row: products, elementwise ops, norms, softmax,
/// transposes and sums over values that are read once or several times; with gradients.
Graph random_step(int ops, std::mt19937& random);

int forward_ops(const Graph& graph);

}  // namespace tessera::test
