#include "tessera/passes/node_regions.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/program.h"

namespace tessera {

namespace {

bool on_time(const Result& result) {
  return result.placement->sharding.dim_of(kMicrobatchAxis) >= 0 || accumulates(result);
}

RegionKind region_of(Phase phase) {
  return phase == Phase::Forward    ? RegionKind::Forward
         : phase == Phase::Backward ? RegionKind::Backward
                                    : RegionKind::Update;
}

}  // namespace

NodeRegions::NodeRegions(const Graph& placed, const Pipeline& pipeline)
    : graph_(placed), pipeline_(pipeline) {
  for (const Node& node : placed.nodes()) chunk_.push_back(pipeline.chunks() == 1 ? 0 : node.stage);
  find_updates();
  find_kinds();
  for (const State& state : placed.states()) kind_[at(state.value.node)] = RegionKind::Begin;
  if (pipeline.schedule().splits) find_weights();
  find_stages();
  find_messages();
}

void NodeRegions::find_updates() {
  std::unordered_map<std::string_view, NodeId> states;
  for (const State& state : graph_.states()) states.emplace(state.path, state.value.node);
  for (const Output& output : graph_.outputs())
    updates_.push_back(output.kind == Output::Kind::Next ? states.at(output.name) : -1);
}

/// Terms of a sum over micro-batches that several chunks have, or Forward and Backward, are
/// complete after the last one only: they are added up then, where the sum belongs.
bool NodeRegions::is_late(NodeId id) const {
  const Node& node = graph_.node(id);
  return std::ranges::any_of(node.inputs, [&](ValueId input) {
    const bool forward = graph_.node(input.node).phase == Phase::Forward;
    const bool apart = chunk(input.node) != chunk(id) || forward != (node.phase == Phase::Forward);
    return late_[at(input.node)] || (apart && accumulates(graph_.result(input)));
  });
}

void NodeRegions::find_kinds() {
  const std::size_t size = graph_.nodes().size();
  kind_.assign(size, RegionKind::Update);
  late_.assign(size, false);
  for (NodeId id = 0; id < graph_.size(); ++id) late_[at(id)] = is_late(id);
  if (!graph_.mesh().has(kMicrobatchAxis)) {
    for (std::size_t i = 0; i < size; ++i) kind_[i] = region_of(graph_.nodes()[i].phase);
    return;
  }
  std::vector<bool> time(size), before(size, false), at_begin(size, false);
  for (std::size_t i = 0; i < size; ++i) {
    const Node& node = graph_.nodes()[i];
    time[i] = !node.op->traits.leaf && !late_[i] && std::ranges::any_of(node.results, on_time);
  }
  for (std::size_t i = size; i-- > 0;) {
    const Node& node = graph_.nodes()[i];
    if (!time[i] && !before[i]) continue;
    // A state is used where it is read, in every micro-batch, unless Begin needs it.
    if (before[i] && !at_begin[i] && node.op == &kUse) time[i] = true;
    for (const ValueId input : node.inputs) {
      if (time[at(input.node)]) continue;
      before[at(input.node)] = true;
      if (!time[i]) at_begin[at(input.node)] = true;
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    const Node& node = graph_.nodes()[i];
    if (time[i]) {
      kind_[i] = region_of(node.phase == Phase::Forward ? Phase::Forward : Phase::Backward);
    } else if (before[i]) {
      kind_[i] = RegionKind::Begin;
      for (const ValueId input : node.inputs) {
        require(!time[at(input.node)], node.op->name,
                " needs a sum over mb: a micro-batch reads it,",
                " but it is complete only after the last one; run it with one micro-batch, or keep "
                "it out of the model\n",
                "    ", describing(graph_, static_cast<NodeId>(i)));
      }
    }
  }
}

/// Leaves to Weights the nodes of backward that no other unit's backward needs.
void NodeRegions::find_weights() {
  std::vector<bool> needed(kind_.size(), false);
  const auto in_backward = [&](NodeId id) {
    return kind(id) == RegionKind::Backward && !graph_.node(id).op->traits.leaf;
  };
  for (NodeId id = graph_.size(); id-- > 0;) {
    if (!in_backward(id)) continue;
    for (const ValueId input : graph_.node(id).inputs) {
      if (!in_backward(input.node) || accumulates(graph_.result(input))) continue;
      const bool crosses = chunk(id) != chunk(input.node) ||
                           unit_of(graph_.node(id).block) != unit_of(graph_.node(input.node).block);
      if (crosses || needed[at(id)]) needed[at(input.node)] = true;
    }
  }
  // An accumulator is in the region that computes it, and is read in that region.
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const bool follows = std::ranges::any_of(graph_.node(id).inputs, [&](ValueId input) {
      return kind(input.node) == RegionKind::Backward && accumulates(graph_.result(input));
    });
    if (in_backward(id) && !needed[at(id)] && !follows) kind_[at(id)] = RegionKind::Weights;
  }
}

/// A stage hands out metrics, and updates the states that are at home on it; those without a chunk
/// are on every stage.
bool NodeRegions::hands_out(int stage, std::size_t output) const {
  const NodeId state = updates_[output];
  return state < 0 || chunk(state) < 0 || stage_of(state) == stage;
}

void NodeRegions::find_stages() {
  const int stages = static_cast<int>(pipeline_.schedule().stages.size());
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<bool>& on = on_.emplace_back(kind_.size(), false);
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      const NodeId node = graph_.outputs()[i].value.node;
      if (hands_out(stage, i) && chunk(node) < 0) on[at(node)] = true;
    }
    for (NodeId id = graph_.size(); id-- > 0;) {
      if (chunk(id) >= 0) on[at(id)] = stage_of(id) == stage;
      if (!on[at(id)]) continue;
      for (const ValueId input : graph_.node(id).inputs) {
        if (chunk(input.node) < 0) on[at(input.node)] = true;
      }
    }
  }
}

/// Records that `reader` on another stage reads the value: a message, and where it arrives.
void NodeRegions::tell(ValueId v, RegionKind reader, int chunk, int stage) {
  const int giver = stage_of(v.node);
  if (giver < 0 || giver == stage) return;
  const RegionKind given = kind(v.node);
  if (!in_loop(reader) || !in_loop(given)) {
    const RegionKind meets = in_loop(reader) ? given : reader;
    return messages_.push_back({v, meets, giver, stage});
  }
  messages_.push_back({v, given, this->chunk(v.node), chunk});
}

void NodeRegions::find_messages() {
  const int stages = static_cast<int>(pipeline_.schedule().stages.size());
  if (stages == 1) return;
  for (int stage = 0; stage < stages; ++stage) {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!computed_on(stage, id)) continue;
      for (const ValueId input : graph_.node(id).inputs) tell(input, kind(id), chunk(id), stage);
    }
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      if (hands_out(stage, i)) tell(graph_.outputs()[i].value, RegionKind::Update, -1, stage);
    }
  }
  std::sort(messages_.begin(), messages_.end());
  const auto same = [](const Message& a, const Message& b) { return !(a < b) && !(b < a); };
  messages_.erase(std::unique(messages_.begin(), messages_.end(), same), messages_.end());
}

}  // namespace tessera
