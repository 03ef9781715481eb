#include "tessera/passes/pack.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/pack.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// True of a copy of a state from the host.
bool is_copy_of_state(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  return node.op == &kCopy && graph.node(node.inputs[0].node).op == &kState;
}

/// The states and what is copied of them, as a region reads them: what has the same values in every
/// micro-batch.
class Weights {
 public:
  explicit Weights(const Program& program) {
    for (const Region& region : program.regions) {
      for (const Output& output : region.graph.outputs()) {
        if (output.kind == Output::Kind::Slot && is_copy_of_state(region.graph, output.value))
          slots_.insert(output.name);
      }
    }
  }
  bool operator()(const Graph& region, ValueId v) const {
    const Node& node = region.node(v.node);
    if (node.op == &kSlot) return slots_.contains(std::get<std::string>(node.attrs[0]));
    return node.op == &kState || is_copy_of_state(region, v);
  }

 private:
  std::set<std::string> slots_;  // that a copy is handed over in
};

/// A state in a layout.
struct Packed {
  std::string path;
  Layout layout;
  friend auto operator<=>(const Packed& a, const Packed& b) {
    return std::tie(a.path, a.layout.tag) <=> std::tie(b.path, b.layout.tag);
  }
  std::string slot() const { return text(path, ".", layout.tag); }
};

Value add_pack(Builder& to, Value state, Result result) {
  const Layout layout = result.type.layout;
  Node node;
  node.op = &kPack;
  node.attrs = {layout.tag, layout.bytes};
  node.block = to.mark().block;
  node.phase = to.mark().phase;
  node.stage = to.mark().stage;
  node.where = to.mark().where;
  node.results = {std::move(result)};
  return to.copy(std::move(node), {state.id()})[0];
}

class RegionPacker {
 public:
  RegionPacker(const Graph& graph, const Weights& weights, const WantedLayout& wanted,
               std::int64_t uses)
      : rewrite_(graph), weights_(weights), wanted_(wanted), uses_(uses) {}

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      std::map<std::size_t, Value> replaced;
      for (std::size_t i = 0; i < from.node(id).inputs.size(); ++i) {
        const ValueId input = from.node(id).inputs[i];
        if (!weights_(from, input)) continue;
        const std::optional<Layout> layout = wanted_(from.call(id), static_cast<int>(i), uses_);
        if (layout) replaced.emplace(i, packed(input, *layout, id));
      }
      if (replaced.empty()) {
        rewrite_.copy(id);
        continue;
      }
      ValueIds inputs;
      for (std::size_t i = 0; i < from.node(id).inputs.size(); ++i) {
        const auto found = replaced.find(i);
        inputs.push_back(found != replaced.end() ? found->second.id()
                                                 : rewrite_(from.node(id).inputs[i]).id());
      }
      rewrite_.copy_on(id, std::move(inputs));
    }
    return rewrite_.finish();
  }

  const std::map<Packed, ValueId>& states() const { return states_; }

 private:
  /// A state is packed before the first micro-batch, a copy of one in each: it does not last.
  Value packed(ValueId weight, const Layout& layout, NodeId reader) {
    const Graph& from = rewrite_.from();
    Value& known = values_[{weight, layout.tag}];
    if (known.valid()) return known;
    const Node& node = from.node(reader);
    rewrite_.to().set_mark({node.block, node.phase, node.stage, node.where});
    Result result = from.result(weight);
    result.type.layout = layout;
    if (uses_ == 1 || from.node(weight.node).op != &kState)
      return known = add_pack(rewrite_.to(), rewrite_(weight), std::move(result));
    const Packed key{std::get<std::string>(from.node(weight.node).attrs[0]), layout};
    states_.emplace(key, weight);
    return known = rewrite_.to().slot(key.slot(), std::move(result));
  }

  Rewrite rewrite_;
  const Weights& weights_;
  const WantedLayout& wanted_;
  std::int64_t uses_;
  std::map<std::pair<ValueId, std::string>, Value> values_;  // by layout
  std::map<Packed, ValueId> states_;  // packed in Begin; in the ids of the graph that came in
};

/// Begin, with the packs that micro-batches read as slots.
Graph with_packs(const Graph& begin, const Graph& reader, const std::map<Packed, ValueId>& packs,
                 std::set<std::string>& made) {
  Rewrite rewrite(begin);
  for (NodeId id = 0; id < begin.size(); ++id) rewrite.copy(id);
  std::map<std::string, Value> leaves;
  for (const State& state : begin.states()) leaves.emplace(state.path, rewrite(state.value));
  std::vector<std::pair<std::string, Value>> slots;
  for (const auto& [key, state] : packs) {
    if (!made.insert(key.slot()).second) continue;
    const Node& leaf = reader.node(state.node);
    rewrite.to().set_mark({leaf.block, Phase::Forward, leaf.stage, leaf.where});
    auto found = leaves.find(key.path);
    if (found == leaves.end()) {
      const Value value = rewrite.to().copy(leaf, {})[0];
      State listed = *reader.find_state(key.path);
      listed.value = value.id();
      rewrite.to().add_state(std::move(listed));
      found = leaves.emplace(key.path, value).first;
    }
    Result result = reader.result(state);
    result.type.layout = key.layout;
    slots.emplace_back(key.slot(), add_pack(rewrite.to(), found->second, std::move(result)));
  }
  for (const auto& [name, value] : slots) rewrite.to().output(Output::Kind::Slot, name, value);
  return rewrite.finish();
}

bool any_wanted(const Graph& graph, const Weights& weights, const WantedLayout& wanted,
                std::int64_t uses) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (weights(graph, node.inputs[i]) && wanted(graph.call(id), static_cast<int>(i), uses))
        return true;
    }
  }
  return false;
}

}  // namespace

Program pack(Program program, const WantedLayout& wanted) {
  const std::int64_t uses = program.mesh().size(kMicrobatchAxis);
  const Weights weights(program);
  std::set<std::string> made;
  for (Region& region : program.regions) {
    if (!in_loop(region.kind)) continue;
    if (!any_wanted(region.graph, weights, wanted, uses)) continue;
    const Graph before = std::move(region.graph);
    RegionPacker packer(before, weights, wanted, uses);
    region.graph = packer.run();
    if (!packer.states().empty()) {
      Graph& begin = program.regions[0].graph;
      begin = with_packs(begin, before, packer.states(), made);
    }
  }
  return program;
}

}  // namespace tessera
