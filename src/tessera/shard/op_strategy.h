#pragma once
/// Strategies of single operators, as MindSpore reads them: a matrix of all ranks for each.

#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/shard/op_shard.h"

namespace tessera {

/// An op on the matrix that its strategy makes: one dim for each factor of its rule, so split, in
/// the order of the operands, behind leading dims that only a longer operand has; then, where the
/// product is smaller than the number of ranks, one for the ranks that repeat the computation. A
/// gather whose table is cut along its rows, though not by all ranks, has that dim first. Of a
/// product of matrices: batch dims, rows, what is summed over, columns.
struct OpSpread {
  NodeId node = -1;
  std::string path;
  std::vector<TensorLayout> ins, outs;  // all on one matrix
  bool outs_asked = false;              // else as the op leaves them: parts of sums are finished
  bool automatic = false;               // no strategy was given: cut along the batch
};

/// Errors: all that is wrong, in order: the number of strategies, of dims, splits below 1, dims
/// that splits do not divide, what the rule of the op does not let be split, operands that
/// disagree, a product that does not divide the devices; each with op, operand, dim, size and
/// split, and what is legal.
OpSpread spread(const Graph& graph, NodeId node, const OpShard& shard, std::int64_t devices);

}  // namespace tessera
