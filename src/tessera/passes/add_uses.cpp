#include "tessera/passes/add_uses.h"

#include <map>
#include <tuple>

#include "tessera/ops/collective.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

Graph add_uses(const Graph& graph) {
  Rewrite rewrite(graph);
  std::map<std::tuple<NodeId, Phase, int>, ValueId> uses;
  const auto use_by = [&](const Node& reader, ValueId state) {
    ValueId& use = uses[{state.node, reader.phase, reader.stage}];
    if (!use.valid()) {
      const std::string path = std::get<std::string>(graph.node(state.node).attrs[0]);
      rewrite.to().set_mark({reader.block, reader.phase, reader.stage, reader.where});
      use = rewrite.to().add(kUse, {rewrite(state)}, {path}, reader.where).id();
    }
    return use;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const bool reads_uses = node.phase != Phase::Update && node.op != &kUse;
    ValueIds inputs;
    for (const ValueId input : node.inputs) {
      const bool state = graph.node(input.node).op == &kState;
      inputs.push_back(state && reads_uses ? use_by(node, input) : rewrite(input).id());
    }
    rewrite.copy_on(id, std::move(inputs));
  }
  return rewrite.finish();
}

}  // namespace tessera
