#pragma once
/// What a user says of one op: how its operands are split, as MindSpore's shard().

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/tensor/device_matrix.h"

namespace tessera {

/// Per tensor, per dim, into how many parts it is cut: ((2, 4), (4, 1)).
using Splits = std::vector<std::vector<std::int64_t>>;
std::string to_text(const Splits& splits);

/// Of an op that takes two matrices, ((2, 4), (4, 1)) cuts the first in 2 x 4 parts and the second
/// in 4 x 1. All ranks are numbered by a matrix of the dims of the op, so split; ranks that are
/// left over repeat the computation, as the last dim of the matrix.
struct OpShard {
  std::string ops;   // their paths; '*' stands for any characters. A state: how it lies
  Splits ins;        // of each operand; scalars may be left out, at the end
  Splits outs = {};  // of each result; none: as the op makes it
  /// Instead of splits: each on the matrix of its layout.
  std::vector<TensorLayout> in_layouts = {}, out_layouts = {};
  friend bool operator==(const OpShard&, const OpShard&) = default;
};
std::string to_text(const OpShard& shard);

/// Per node of the forward phase its path: the block and the name, or where it has none the op,
/// numbered from the second on: "layers.0.mlp.up.matmul", "matmul2". No two ops have one path: a
/// second "residual" of a block is "residual2". Of a state or batch input its path. Empty for other
/// nodes: gradients follow the op whose gradient they are.
std::vector<std::string> op_paths(const Graph& graph);

}  // namespace tessera
