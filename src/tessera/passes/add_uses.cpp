#include "tessera/passes/add_uses.h"

#include <map>
#include <utility>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/before_loop.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

UseKey use_key(const Graph& graph, NodeId reader, GatherScope scope, bool before_loop) {
  const Node& node = graph.node(reader);
  if (scope == GatherScope::Step) return {Phase::Forward, -1, -1, false};
  return {node.phase, node.stage, scope == GatherScope::Use ? reader : -1, before_loop};
}

Graph add_uses(const Graph& graph, GatherScope scope) {
  Rewrite rewrite(graph);
  const std::vector<bool> before_loop = nodes_before_loop(graph);
  std::map<std::pair<NodeId, UseKey>, ValueId> uses;
  const auto use_by = [&](NodeId id, ValueId state) {
    ValueId& use = uses[{state.node, use_key(graph, id, scope, before_loop[at(id)])}];
    if (!use.valid()) {
      const Node& source = graph.node(state.node);
      const Node& reader = graph.node(id);
      const int stage = scope == GatherScope::Step ? source.stage : reader.stage;
      rewrite.to().set_mark({reader.block, reader.phase, stage, reader.where});
      use = rewrite.to()
                .add(kUse, {rewrite(state)}, {std::get<std::string>(source.attrs[0])}, reader.where)
                .id();
    }
    return use;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const bool reads_uses = node.phase != Phase::Update && node.op != &kUse;
    ValueIds inputs;
    for (const ValueId input : node.inputs) {
      const bool state = graph.node(input.node).op == &kState;
      inputs.push_back(state && reads_uses ? use_by(id, input) : rewrite(input).id());
    }
    rewrite.copy_on(id, std::move(inputs));
  }
  return rewrite.finish();
}

}  // namespace tessera
