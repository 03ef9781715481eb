#include "tessera/ir/verify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "tessera/ir/builder.h"
#include "tessera/ir/graph_words.h"

namespace tessera {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      operands(id);
      attributes(id);
      types(id);
      for (std::size_t i = 0; i < graph_.node(id).results.size(); ++i)
        lies(id, graph_.node(id).results[i]);
    }
    states();
    outputs();
  }

 private:
  /// As check, with the node's line.
  template <typename... Parts>
  void check_node(bool ok, NodeId id, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      check(false, parts..., "\n    ", describe(graph_, id));
  }
  bool defined(ValueId value, NodeId before) const {
    return value.node >= 0 && value.node < before && value.index >= 0 &&
           value.index < static_cast<std::int32_t>(graph_.node(value.node).results.size());
  }

  void operands(NodeId id) const;
  void attributes(NodeId id);
  void types(NodeId id) const;
  bool declares(const Result& stored, const TensorType& attrs) const;
  void lies(NodeId id, const Result& result) const;
  void axes(NodeId id, const Sharding& sharding) const;
  void states() const;
  void outputs() const;

  const Graph& graph_;
  std::unordered_set<std::string_view> batch_names_;
};

void Verifier::operands(NodeId id) const {
  const Node& node = graph_.node(id);
  for (const ValueId input : node.inputs) {
    check_node(defined(input, id), id, "operand ", input, " is not defined before it is used");
  }
  if (graph_.form() == Form::Local)
    return;  // regions keep the numbers of the graph that they were cut from
  check_node(!node.cotangent || defined(node.cotangent->of, graph_.size()), id,
             "cotangent of a value that is not there");
  check_node(node.like >= -1 && node.like < graph_.size(), id, "like a node that is not there: %",
             node.like);
  check_node(node.remat_of >= -1 && node.remat_of < graph_.size(), id,
             "copy of a node that is not there: %", node.remat_of);
}

void Verifier::attributes(NodeId id) {
  const Node& node = graph_.node(id);
  check_node(node.op->attrs.allow(node.attrs.size()), id, node.op->name, " takes ",
             node.op->attrs.size(), " attributes, not ", node.attrs.size());
  for (std::size_t i = 0; i < node.attrs.size(); ++i) {
    check_node(node.attrs[i].index() == static_cast<std::size_t>(node.op->attrs[i].kind), id,
               "attribute '", node.op->attrs[i].name, "' has the wrong kind");
    if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&node.attrs[i])) {
      check_node(*graph != nullptr, id, "attribute '", node.op->attrs[i].name, "' holds no graph");
      verify(**graph);
    }
  }
  if (node.op != &kBatch) return;
  const std::string& name = std::get<std::string>(node.attrs[0]);
  check_node(batch_names_.insert(name).second, id, "batch input '", name, "' is given twice");
}

void Verifier::types(NodeId id) const {
  const Node& node = graph_.node(id);
  TensorTypes inferred;
  try {
    inferred = node.op->infer(graph_.call(id));
  } catch (const Error& error) {
    check_node(false, id, "the type rule refuses the node: ", error.what());
  }
  check_node(inferred.size() == node.results.size(), id, "has ", node.results.size(),
             " results, its type rule gives ", inferred.size());
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    const bool same = node.op->traits.leaf ? declares(node.results[i], inferred[i])
                                           : node.results[i].type == inferred[i];
    check_node(same, id, "result ", i, " is ", node.results[i].type, ", its type rule gives ",
               inferred[i]);
  }
}

/// Inputs: attributes give dtype and shape, in a local graph that of the shard or of the whole; the
/// layout is free.
bool Verifier::declares(const Result& stored, const TensorType& attrs) const {
  return stored.type.dtype == attrs.dtype &&
         (stored.type.shape == attrs.shape ||
          (graph_.form() == Form::Local && stored.logical == attrs.shape));
}

/// Where the value lies, as the form promises.
void Verifier::lies(NodeId id, const Result& result) const {
  const bool placed = bool(result.placement), has_mesh = !graph_.mesh().axes().empty();
  switch (graph_.form()) {
    case Form::Global:
      check_node(!placed && result.logical.empty(), id, "has a placement in a global graph");
      return;
    case Form::Placed:
      check_node(placed, id, "has no placement");
      check_node(result.logical.empty(), id, "has a logical shape in a placed graph");
      break;
    case Form::Local:
      check_node(placed || !has_mesh, id, "has no placement");
      if (!placed) return;
  }
  const Sharding& sharding = result.placement->sharding;
  check_node(sharding.ndim() == result.type.ndim(), id, "placement ", *result.placement, " of a ",
             result.type);
  axes(id, sharding);
  if (graph_.form() == Form::Placed) return;
  check_node(result.logical.ndim() == result.type.ndim(), id, "logical shape ", result.logical,
             " of a ", result.type);
  const Shape shard = local_shape(result.logical, sharding, graph_.mesh());
  check_node(shard == result.type.shape, id, "is ", result.type, ", but a shard of ",
             result.logical, " at ", sharding, " has shape ", shard);
}

void Verifier::axes(NodeId id, const Sharding& sharding) const {
  std::vector<std::string_view> used;
  const auto use = [&](std::string_view axis) {
    check_node(graph_.mesh().has(axis), id, "placement ", sharding, ": the mesh has no axis '",
               axis, "'");
    check_node(std::find(used.begin(), used.end(), axis) == used.end(), id, "placement ", sharding,
               " uses axis '", axis, "' twice");
    used.push_back(axis);
  };
  for (const auto& dim : sharding.dims) {
    for (const std::string& axis : dim) use(axis);
  }
  for (const Partial& partial : sharding.partial) use(partial.axis);
}

void Verifier::states() const {
  std::unordered_set<std::string_view> paths;
  for (const State& state : graph_.states()) {
    check(paths.insert(state.path).second, "state '", state.path, "' is declared twice");
    check(defined(state.value, graph_.size()), "state '", state.path, "' has no value");
    const Node& node = graph_.node(state.value.node);
    check_node(node.op == &kState && std::get<std::string>(node.attrs[0]) == state.path,
               state.value.node, "state '", state.path, "' is the value of another node");
    const bool drawn = state.init.kind != Init::Kind::Constant;
    const DType dtype = graph_.type(state.value).dtype;
    check_node(!drawn || dtype == DType::F32 || is_16_bit(dtype), state.value.node, "state '",
               state.path, "' is ", graph_.type(state.value),
               ", and its first value is drawn: what is drawn is f32 or rounded to 16 bits");
    check_node(!drawn || (state.init.value >= 0 && std::isfinite(state.init.value)),
               state.value.node, "state '", state.path, "' is drawn with a deviation or bound of ",
               state.init.value, ", which must be a number from 0 on");
    if (graph_.form() == Form::Global) continue;
    for (const Shared<Placement>& placement : {state.home, state.use}) {
      if (!placement) continue;
      check_node(placement->sharding.ndim() == node.type().ndim(), state.value.node, "placement ",
                 *placement, " of state '", state.path, "', a ", node.type());
      axes(state.value.node, placement->sharding);
    }
  }
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (node.op != &kState) continue;
    const std::string& path = std::get<std::string>(node.attrs[0]);
    check_node(paths.contains(path), id, "state '", path, "' is read but not declared");
  }
}

void Verifier::outputs() const {
  std::unordered_map<std::string_view, ValueId> states;
  for (const State& state : graph_.states()) states.emplace(state.path, state.value);
  std::array<std::unordered_set<std::string_view>, graph_words::kOutputs.size()> names;  // by kind
  for (const Output& output : graph_.outputs()) {
    check(defined(output.value, graph_.size()), "output '", output.name, "' is ", output.value,
          ", which is not there");
    check(names[static_cast<std::size_t>(output.kind)].insert(output.name).second, "output '",
          output.name, "' is given twice");
    if (output.kind != Output::Kind::Next) continue;
    const auto state = states.find(output.name);
    // A region that writes a state need not read it.
    check_node(state != states.end() || graph_.form() == Form::Local, output.value.node,
               "next value of '", output.name, "', which is no state");
    if (state == states.end()) continue;
    const TensorType &before = graph_.type(state->second), &after = graph_.type(output.value);
    check_node(before == after, output.value.node, "state '", output.name, "' is ", before,
               ", its next value ", after);
  }
}

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace tessera
