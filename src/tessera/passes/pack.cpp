#include "tessera/passes/pack.h"

#include <map>
#include <set>
#include <tuple>

#include "tessera/ir/strategy.h"
#include "tessera/ops/pack.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

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
  RegionPacker(const Graph& graph, const WantedLayout& wanted, std::int64_t uses, bool from_begin)
      : rewrite_(graph), wanted_(wanted), uses_(uses), from_begin_(from_begin) {}

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      std::map<std::size_t, Value> replaced;
      for (std::size_t i = 0; i < from.node(id).inputs.size(); ++i) {
        const ValueId input = from.node(id).inputs[i];
        if (from.node(input.node).op != &kState) continue;
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
  Value packed(ValueId state, const Layout& layout, NodeId reader) {
    const Graph& from = rewrite_.from();
    const Packed key{std::get<std::string>(from.node(state.node).attrs[0]), layout};
    states_.emplace(key, state);
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    const Node& node = from.node(reader);
    rewrite_.to().set_mark({node.block, node.phase, node.stage, node.where});
    Result result = from.result(state);
    result.type.layout = layout;
    Value value;
    if (from_begin_) {
      value = rewrite_.to().slot(key.slot(), std::move(result));
    } else {
      value = add_pack(rewrite_.to(), rewrite_(state), std::move(result));
    }
    return values_.emplace(key, value).first->second;
  }

  Rewrite rewrite_;
  const WantedLayout& wanted_;
  std::int64_t uses_;
  bool from_begin_;
  std::map<Packed, Value> values_;
  std::map<Packed, ValueId> states_;  // in the ids of the graph that came in
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

bool any_wanted(const Graph& graph, const WantedLayout& wanted, std::int64_t uses) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph.node(node.inputs[i].node).op == &kState &&
          wanted(graph.call(id), static_cast<int>(i), uses))
        return true;
    }
  }
  return false;
}

}  // namespace

Program pack(Program program, const WantedLayout& wanted) {
  const std::int64_t uses = program.mesh().size(kMicrobatchAxis);
  std::set<std::string> made;
  for (Region& region : program.regions) {
    if (!in_loop(region.kind)) continue;
    if (!any_wanted(region.graph, wanted, uses)) continue;
    const Graph before = std::move(region.graph);
    RegionPacker packer(before, wanted, uses, uses > 1);
    region.graph = packer.run();
    if (uses > 1 && !packer.states().empty()) {
      Graph& begin = program.regions[0].graph;
      begin = with_packs(begin, before, packer.states(), made);
    }
  }
  return program;
}

}  // namespace tessera
