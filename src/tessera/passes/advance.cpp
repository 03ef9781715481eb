#include "tessera/passes/advance.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

class Advance {
 public:
  explicit Advance(Program& program)
      : program_(program), update_(program.regions.back().graph), behind_(program.regions.size()) {}

  void run() {
    for (std::size_t r = 0; r < program_.regions.size(); ++r) {
      const Region& region = program_.regions[r];
      if (!makes_gradients(region)) continue;
      for (const Output& output : region.graph.outputs()) {
        if (output.kind == Output::Kind::Slot && is_computed(region.graph, output.value))
          slots_[output.name] = {r, output.value};
      }
    }
    find_moved();
    for (std::size_t r = 0; r < behind_.size(); ++r) {
      if (!behind_[r].empty()) program_.regions[r].graph = with_moved(r);
    }
    if (!moved_.empty()) program_.regions.back().graph = update_without();
  }

 private:
  struct Made {
    std::size_t region;
    ValueId value;
  };
  struct Move {
    ValueId value;  // that is read
    NodeId node;    // of Update
  };

  static bool makes_gradients(const Region& region) {
    return region.kind == RegionKind::Backward || region.kind == RegionKind::Weights;
  }

  /// The node that makes a value, looking through nodes that only rename or reshape it.
  static NodeId maker(const Graph& graph, ValueId v) {
    const Node& node = graph.node(v.node);
    return node.op->view == nullptr ? v.node : maker(graph, node.inputs[0]);
  }

  static bool is_computed(const Graph& graph, ValueId v) {
    const Node& node = graph.node(maker(graph, v));
    return !node.op->traits.leaf && !is_transfer(*node.op);
  }

  void find_moved() {
    for (NodeId id = 0; id < update_.size(); ++id) {
      const Node& node = update_.node(id);
      if (node.op->traits.leaf || is_transfer(*node.op) || node.inputs.size() != 1 ||
          node.results.size() != 1 || node.type().numel() != 1)
        continue;
      const Node& read = update_.node(node.inputs[0].node);
      if (read.op != &kSlot || read.type().numel() == 1) continue;
      const auto slot = slots_.find(std::get<std::string>(read.attrs[0]));
      if (slot == slots_.end()) continue;
      moved_[id] = text(slot->first, ".", node.op->name, ".", id);
      const auto& [region, value] = slot->second;
      const NodeId made_by = maker(program_.regions[region].graph, value);
      behind_[region].emplace(made_by, Move{value, id});
    }
  }

  Graph with_moved(std::size_t region) {
    const Graph& graph = program_.regions[region].graph;
    Rewrite rewrite(graph);
    const auto carry = [&](NodeId id, const auto& again) -> void {
      if (rewrite.has({id, 0})) return;
      for (const ValueId input : graph.node(id).inputs) again(input.node, again);
      rewrite.copy(id);
    };
    for (NodeId id = 0; id < graph.size(); ++id) {
      carry(id, carry);
      const auto [first, end] = behind_[region].equal_range(id);
      for (auto it = first; it != end; ++it) {
        const auto& [value, moved] = it->second;
        carry(value.node, carry);
        Node node = update_.node(moved);
        node.phase = Phase::Backward;
        const Value made = rewrite.to().copy(std::move(node), {rewrite(value).id()})[0];
        rewrite.to().output(Output::Kind::Slot, moved_.at(moved), made);
      }
    }
    return rewrite.finish();
  }

  Graph update_without() {
    Rewrite rewrite(update_);
    for (NodeId id = 0; id < update_.size(); ++id) {
      const auto moved = moved_.find(id);
      if (moved == moved_.end()) {
        rewrite.copy(id);
        continue;
      }
      const Node& node = update_.node(id);
      rewrite.to().set_mark({node.block, node.phase, node.stage, node.where});
      rewrite.map({id, 0}, rewrite.to().slot(moved->second, node.results[0]));
    }
    return rewrite.finish();
  }

  Program& program_;
  const Graph& update_;
  std::unordered_map<std::string, Made> slots_;  // what a region of the loop computes and hands on
  std::map<NodeId, std::string> moved_;          // nodes of Update, and the slots they become
  std::vector<std::multimap<NodeId, Move>> behind_;  // by region: by what makes what is read
};

}  // namespace

Program advance(Program program) {
  if (program.mesh().size(kMicrobatchAxis) == 1) Advance(program).run();
  return program;
}

}  // namespace tessera
