#include "tessera/ir/graph.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera {

std::string to_text(ValueId id) {
  return id.index == 0 ? text("%", id.node) : text("%", id.node, ".", id.index);
}

bool operator==(const Where& a, const Where& b) {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

Where Where::read(std::string file, int line) {
  auto owner = std::make_shared<const std::string>(std::move(file));
  return {owner->c_str(), line, owner};
}

namespace {

/// This file begins with the folder of the library's sources, whatever they lie in; "" of a
/// compiler that is handed other names.
constexpr std::string_view library_folder(std::string_view here) {
  constexpr std::string_view kHere = "tessera/ir/graph.cpp";
  return here.ends_with(kHere) ? here.substr(0, here.size() - kHere.size() + 8) : "";
}
constexpr std::string_view kLibraryFolder = library_folder(__FILE__);

}  // namespace

/// Of a source of the library the path below tessera/, of others the last folder and the name: the
/// same wherever the sources lie.
const char* Where::short_name(const char* file) {
  const std::string_view path = file;
  if (!kLibraryFolder.empty() && path.starts_with(kLibraryFolder))
    return file + kLibraryFolder.size();
  std::size_t at = path.rfind('/');
  if (at != std::string_view::npos && at > 0) at = path.rfind('/', at - 1);
  return at == std::string_view::npos ? file : file + at + 1;
}

bool operator==(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.results == b.results && a.block == b.block &&
         a.phase == b.phase && a.recompute == b.recompute && a.stage == b.stage &&
         a.where == b.where && a.name == b.name && a.cotangent == b.cotangent && a.like == b.like &&
         a.remat_of == b.remat_of && a.attrs == b.attrs;
}

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
  if (!n.block.empty()) out += text(", ", n.block);
  if (n.where.line > 0) out += text(", written at ", n.where.file, ":", n.where.line);
  return out;
}

std::string_view parameter_path(const State& state) {
  const std::string_view path = state.path;
  const bool extends =
      state.role == Role::Moment || state.role == Role::Copy || state.role == Role::Reference;
  return extends ? path.substr(0, path.rfind('.')) : path;
}

std::set<std::string> copied_parameters(const Graph& graph) {
  std::set<std::string> out;
  for (const State& state : graph.states()) {
    if (state.role == Role::Copy) out.emplace(parameter_path(state));
  }
  return out;
}

}  // namespace tessera
