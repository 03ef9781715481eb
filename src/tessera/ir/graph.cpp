#include "tessera/ir/graph.h"

#include <cstring>

#include "tessera/base/error.h"

namespace tessera {

std::string to_text(ValueId id) { return id.index == 0 ? text("%", id.node) : text("%", id.node, ".", id.index); }

bool operator==(const Where& a, const Where& b) { return a.line == b.line && std::strcmp(a.file, b.file) == 0; }

const State* Graph::find_state(std::string_view path) const {
  for (const State& state : states_) {
    if (state.path == path) return &state;
  }
  return nullptr;
}

ValueId Graph::output(Output::Kind kind, std::string_view name) const {
  for (const Output& output : outputs_) {
    if (output.kind == kind && output.name == name) return output.value;
  }
  return {};
}

OpCall Graph::call(NodeId id) const {
  const Node& n = node(id);
  OpCall::Types ins, outs;
  for (const ValueId input : n.inputs) ins.push_back(&type(input));
  for (const Result& result : n.results) outs.push_back(&result.type);
  return OpCall(*n.op, std::move(ins), n.attrs, std::move(outs));
}

Factors Graph::factors(NodeId id) const { return factors_of(call(id)); }

std::string describe(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  std::string out = text("node %", id, " = ", n.op->name, "(", join(n.inputs), ")");
  if (!n.block.empty()) out += ", " + n.block;
  if (n.where.line > 0) {
    const std::string_view file = n.where.file;
    const std::size_t at = file.rfind("tessera/");
    out += text(", written at ", at == std::string_view::npos ? file : file.substr(at + 8), ":", n.where.line);
  }
  return out;
}

}  // namespace tessera
