#pragma once
/// Batch dims of size 1 that matmul() takes from an operand, because they repeat.

#include "tessera/ir/graph.h"
#include "tessera/shard/op_shard.h"

namespace tessera {

/// `shard` as the op's node has its operands: of ((2, 1, 4), (1, 4, 2)) for x [8, 3, 4] and w [1,
/// 4, 6] the node has w as [4, 6], and its strategy is (4, 2). Errors: such a dim is split.
OpShard without_repeated_dims(const Graph& graph, NodeId node, OpShard shard);

}  // namespace tessera
