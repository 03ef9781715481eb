#pragma once
/// Carries a graph over into a new one, node by node: what every pass that keeps most of a graph is
/// written with.

#include <span>
#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/ir/value_table.h"

namespace tessera {

/// A node with the marks of another: its block, phase, stage and place in the source.
Node marked_like(const Node& like, const OpDef& op, Attrs attrs, std::vector<Result> results);

class Rewrite {
 public:
  explicit Rewrite(const Graph& from) : Rewrite(from, from.form()) {}
  Rewrite(const Graph& from, Form form);

  Builder& to() { return to_; }
  const Graph& from() const { return from_; }

  /// The new value for an old one. Errors: there is none.
  Value operator()(ValueId old);
  bool has(ValueId old) const { return map_[old].valid(); }
  void map(ValueId old, Value value) { map_[old] = value; }

  /// Copies a node on the new values of its inputs; references to other nodes (cotangent, like,
  /// remat_of) follow.
  std::vector<Value> copy(NodeId id);
  /// The same, on other inputs, which are values of the new graph.
  std::vector<Value> copy_on(NodeId id, ValueIds inputs);
  /// The same, with results of the types that the op gives on these inputs and attributes.
  std::vector<Value> copy_retyped(NodeId id, ValueIds inputs, Attrs attrs);
  /// One more copy, which does not become the new value of the old one.
  std::vector<Value> copy_apart(NodeId id, ValueIds inputs);

  /// Carries states and outputs over and ends the graph.
  Graph finish();

 private:
  Node followed(NodeId id);

  const Graph& from_;
  Builder to_;
  ValueTable<Value> map_;
};

/// Per node, the nodes that use a result of it, each once, in order; outputs are not counted.
class Users {
 public:
  explicit Users(const Graph& graph);
  std::span<const NodeId> operator()(NodeId id) const {
    const std::size_t i = static_cast<std::size_t>(id);
    return std::span(list_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<std::size_t> first_;  // per node, and one more
  std::vector<NodeId> list_;
};

}  // namespace tessera
