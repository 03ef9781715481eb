#include "tessera/passes/before_loop.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/elementwise.h"

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
    batch_only[at(id)] =
        node.op != &kState && std::ranges::all_of(node.inputs, [&](ValueId input) -> bool {
          return batch_only[at(input.node)];
        });
    if (node.op == &kWholeBatch || (batch_only[at(id)] && reduces_rows(graph, id)))
      stack.push_back(id);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (out[at(id)] || graph.node(id).op->traits.leaf) continue;
    out[at(id)] = true;
    for (const ValueId input : graph.node(id).inputs) stack.push_back(input.node);
  }
  return out;
}

}  // namespace tessera
