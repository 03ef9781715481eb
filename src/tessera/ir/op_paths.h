#pragma once
/// What single ops and values are called: the paths by which strategies name them.

#include <string>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Per node of the forward phase its path: the block and the name, or where it has none the op,
/// numbered from the second on: "layers.0.mlp.up.matmul", "matmul2". No two ops have one path: a
/// second "residual" of a block is "residual2". Of a state or batch input its path. Empty for other
/// nodes: gradients follow the op whose gradient they are.
std::vector<std::string> op_paths(const Graph& graph);
/// The path by which a pin names a value: the block and the name. Empty: it has no name.
std::string value_path(const Node& node);

}  // namespace tessera
