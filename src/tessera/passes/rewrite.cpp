#include "tessera/passes/rewrite.h"

#include <numeric>

namespace tessera {

Node marked_like(const Node& like, const OpDef& op, Attrs attrs, std::vector<Result> results) {
  Node out;
  out.op = &op;
  out.attrs = std::move(attrs);
  out.block = like.block;
  out.phase = like.phase;
  out.stage = like.stage;
  out.where = like.where;
  out.results = std::move(results);
  return out;
}

Rewrite::Rewrite(const Graph& from, Form form) : from_(from), to_(form, from.mesh()), map_(from) {}

Value Rewrite::operator()(ValueId old) {
  const Value value = map_[old];
  check(value.valid(), "rewrite: ", describing(from_, old.node), " has not been carried over");
  return value;
}

std::vector<Value> Rewrite::copy(NodeId id) {
  ValueIds inputs;
  for (const ValueId input : from_.node(id).inputs) inputs.push_back((*this)(input).id());
  return copy_on(id, std::move(inputs));
}

std::vector<Value> Rewrite::copy_on(NodeId id, ValueIds inputs) {
  const std::vector<Value> values = copy_apart(id, std::move(inputs));
  for (std::size_t i = 0; i < values.size(); ++i)
    map({id, static_cast<std::int32_t>(i)}, values[i]);
  return values;
}

std::vector<Value> Rewrite::copy_retyped(NodeId id, ValueIds inputs, Attrs attrs) {
  Node node = followed(id);
  node.attrs = std::move(attrs);
  OpCall::Types ins;
  for (const ValueId input : inputs) ins.push_back(&to_.so_far().type(input));
  const TensorTypes types = node.op->infer(OpCall(*node.op, ins, node.attrs));
  for (std::size_t r = 0; r < types.size(); ++r) node.results[r].type = types[r];
  const std::vector<Value> values = to_.copy(std::move(node), std::move(inputs));
  for (std::size_t i = 0; i < values.size(); ++i)
    map({id, static_cast<std::int32_t>(i)}, values[i]);
  return values;
}

std::vector<Value> Rewrite::copy_apart(NodeId id, ValueIds inputs) {
  return to_.copy(followed(id), std::move(inputs));
}

/// A node, with references into the new graph.
Node Rewrite::followed(NodeId id) {
  Node node = from_.node(id);
  const auto follow = [&](NodeId old) {
    return old >= 0 && has({old, 0}) ? (*this)({old, 0}).id().node : -1;
  };
  node.like = follow(node.like);
  node.remat_of = follow(node.remat_of);
  if (node.cotangent) {
    if (has(node.cotangent->of)) {
      node.cotangent->of = (*this)(node.cotangent->of).id();
    } else {
      node.cotangent.reset();
    }
  }
  return node;
}

Graph Rewrite::finish() {
  for (State state : from_.states()) {
    if (!has(state.value)) continue;
    state.value = (*this)(state.value).id();
    to_.add_state(std::move(state));
  }
  for (const Output& output : from_.outputs())
    to_.output(output.kind, output.name, (*this)(output.value));
  return to_.finish();
}

Users::Users(const Graph& graph) : first_(graph.nodes().size() + 1, 0) {
  const auto for_each_use = [&](auto&& visit) {
    std::vector<NodeId> last(graph.nodes().size(), -1);
    for (NodeId id = 0; id < graph.size(); ++id) {
      for (const ValueId input : graph.node(id).inputs) {
        NodeId& seen = last[static_cast<std::size_t>(input.node)];
        if (seen != id) visit(input.node, id);
        seen = id;
      }
    }
  };
  for_each_use([&](NodeId of, NodeId) { ++first_[static_cast<std::size_t>(of) + 1]; });
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  list_.resize(first_.back());
  std::vector<std::size_t> next = first_;
  for_each_use([&](NodeId of, NodeId user) { list_[next[static_cast<std::size_t>(of)]++] = user; });
}

}  // namespace tessera
