#pragma once
/// Which values of the forward pass have a gradient.

#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/value_table.h"

namespace tessera {

/// The gradients of a step's values. In a graph without gradients no value has one.
class GradientFlow {
 public:
  explicit GradientFlow(const Graph& graph);
  bool any() const { return any_; }
  /// Per operand: its gradient is computed.
  std::vector<bool> wants(NodeId id) const;
  /// Per result: a gradient comes through it.
  std::vector<bool> flows(NodeId id) const;
  /// Per result: backward reads it.
  std::vector<bool> read_back(NodeId id) const;

 private:
  const Graph& graph_;
  bool any_ = false;
  std::vector<bool> needed_;  // nodes that depend on a parameter
  ValueTable<char> flows_, read_back_;
};

inline GradientFlow gradient_flow(const Graph& graph) { return GradientFlow(graph); }

}  // namespace tessera
