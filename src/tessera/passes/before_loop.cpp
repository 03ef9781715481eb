#include "tessera/passes/before_loop.h"

#include "tessera/ir/builder.h"

namespace tessera {

namespace {

bool reduces_rows(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.inputs.empty() || graph.type(node.inputs[0]).ndim() == 0) return false;
  const Factors rule = graph.factors(id);
  const std::vector<int>& outer = rule.ins[0][0];
  return !outer.empty() && rule.reduces(outer[0], 0);
}

}  // namespace

std::vector<bool> nodes_before_loop(const Graph& graph) {
  std::vector<bool> batch_only(graph.nodes().size(), false), out(graph.nodes().size(), false);
  std::vector<NodeId> stack;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    bool any = false, only = !node.inputs.empty();
    for (const ValueId input : node.inputs) {
      const bool constant = graph.node(input.node).op == &kConstant;
      any = any || !constant;
      only = only && (constant || batch_only[static_cast<std::size_t>(input.node)]);
    }
    batch_only[static_cast<std::size_t>(id)] = node.op == &kBatch || (only && any);
    if (batch_only[static_cast<std::size_t>(id)] && reduces_rows(graph, id)) stack.push_back(id);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (out[static_cast<std::size_t>(id)] || graph.node(id).op->traits.leaf) continue;
    out[static_cast<std::size_t>(id)] = true;
    for (const ValueId input : graph.node(id).inputs) stack.push_back(input.node);
  }
  return out;
}

}  // namespace tessera
