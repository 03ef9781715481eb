#pragma once
/// What a user says of one op: how its operands are split, as MindSpore's shard().

#include <string>
#include <vector>

#include "tessera/shard/device_matrix.h"
#include "tessera/tensor/splits.h"

namespace tessera {

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

}  // namespace tessera
