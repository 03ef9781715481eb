#pragma once
/// Graphs for the eyes of who wants to know how an op is spread and what a rank does, in the form
/// that MindSpore's users know from save_graphs.

#include <string>
#include <vector>

#include "tessera/plan/compile.h"
#include "tessera/tensor/splits.h"

namespace tessera {

/// The strategy of an op in a placed graph, in MindSpore's words: per operand the number of parts
/// of each dim, as it is read.
Splits in_strategy(const Graph& placed, NodeId node);

/// The text of a placed graph: every node with its strategy, whole shapes and placements.
///
///   %5(matmul) = matmul(%4, %2) {rule: m k, k n -> m n} {in_strategy: ((2, 4), (4, 1))}
/// : (<Tensor[Float32], (16, 32)>, <Tensor[Float32], (32, 16)>) -> (<Tensor[Float32], (16, 16)>)
///       # lies: ([d0,d1], [d1,-]) -> ([d0,-]+d1)
///       # scope: (forward) # In file quickstart/quickstart.cpp(45)
std::string strategies_text(const Graph& placed);

/// The text of local graphs, in the order in which they run: every node of one rank with its
/// shapes; collectives with the ranks of their group and the bytes that this rank sends.
///
///   %9(all_reduce) = all_reduce(%8) {axes: d1, monoid: sum} {group_ranks: 0-1-2-3} {bytes: 768}
std::string execution_text(const std::vector<PassGraph>& regions, int rank);

}  // namespace tessera
