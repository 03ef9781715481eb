#include "tessera/ir/print.h"
namespace tessera {
std::string body_text(const Graph& graph) {
  std::string out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    out += text(out.empty() ? "" : "; ", ValueId{id, 0}, " = ", node.op->name, "(", join(node.inputs), ")");
    for (std::size_t i = 0; i < node.attrs.size(); ++i) out += text(" ", node.op->attrs[i].name, "=", node.attrs[i]);
    out += text(" : ", node.type());
  }
  return out;
}
std::string to_text(const Graph& graph) { return body_text(graph); }
}  // namespace tessera
