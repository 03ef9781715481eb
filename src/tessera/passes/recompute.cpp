#include "tessera/passes/recompute.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "tessera/base/index.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// A product of an activation and a weight.
bool is_projection(const Graph& graph, const Node& node) {
  return node.op->product != nullptr && std::ranges::any_of(node.inputs, [&](ValueId input) {
           return graph.node(input.node).op == &kState;
         });
}

/// One pass over memory at most: nothing is summed over or looked up, as in products and attention,
/// so that each number of the operands counts for few of the result. Views take no pass.
bool is_one_pass(const Graph& graph, NodeId id) {
  const OpDef& op = *graph.node(id).op;
  if (op.view != nullptr || op.factors == nullptr) return op.view != nullptr;
  const Factors factors = graph.factors(id);
  return std::ranges::all_of(factors.ins, [&](const Factors::Dims& operand) {
    return std::ranges::all_of(operand, [&](const std::vector<int>& dim) {
      return std::ranges::all_of(dim,
                                 [&](int factor) { return factors.has(factors.outs[0], factor); });
    });
  });
}

class Recomputer {
 public:
  Recomputer(const Graph& graph, const std::vector<RecomputePin>& pins)
      : rewrite_(graph), pins_(pins), dropped_(graph.nodes().size()), copies_(graph) {
    for (NodeId id = 0; id < graph.size(); ++id) dropped_[at(id)] = is_recomputed(graph.node(id));
    for (const Node& reader : graph.nodes()) {
      for (const ValueId input : reader.inputs) {
        if (!reads_within(reader, graph.node(input.node))) dropped_[at(input.node)] = false;
      }
    }
    drop_elementwise();
    for (const Output& output : graph.outputs()) dropped_[at(output.value.node)] = false;
  }

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      const bool backward = from.node(id).phase == Phase::Backward;
      ValueIds inputs;
      for (const ValueId input : from.node(id).inputs)
        inputs.push_back(backward && dropped_[at(input.node)] ? again(input)
                                                              : rewrite_(input).id());
      const std::vector<Value> values = rewrite_.copy_on(id, std::move(inputs));
      rewrite_.to().set_recompute(values[0], Recompute::None);
    }
    return rewrite_.finish();
  }

 private:
  Recompute asked_of(const Node& node) const {
    Recompute what = node.recompute;
    for (const RecomputePin& pin : pins_) {
      if (matches(pin.blocks, unit_of(node.block))) what = pin.what;
    }
    return what;
  }

  bool is_recomputed(const Node& node) const {
    if (node.phase != Phase::Forward || node.op->traits.leaf) return false;
    const Recompute what = asked_of(node);
    return what == Recompute::Full ||
           (what == Recompute::Selective && !is_projection(rewrite_.from(), node));
  }

  /// Operands come before what is computed of them, so that one walk knows of each whether backward
  /// has it.
  void drop_elementwise() {
    const Graph& graph = rewrite_.from();
    std::vector<bool> leaves(graph.nodes().size());            // the stage, or backward
    std::set<std::pair<NodeId, std::int32_t>> backward_reads;  // on that stage
    for (const Output& output : graph.outputs()) leaves[at(output.value.node)] = true;
    for (const Node& reader : graph.nodes()) {
      for (const ValueId input : reader.inputs) {
        const bool moves = reader.stage != graph.node(input.node).stage;
        if (reader.phase == Phase::Update || moves) leaves[at(input.node)] = true;
        // With a view, all of the value is there that it is of.
        for (NodeId id = input.node; reader.phase == Phase::Backward;) {
          backward_reads.emplace(id, reader.stage);
          if (graph.node(id).op->view == nullptr) break;
          id = graph.node(id).inputs[0].node;
        }
      }
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.phase != Phase::Forward || node.op->traits.leaf || leaves[at(id)] ||
          asked_of(node) != Recompute::Elementwise || !is_one_pass(graph, id))
        continue;
      dropped_[at(id)] = std::ranges::all_of(node.inputs, [&](ValueId input) {
        return graph.node(input.node).op->traits.leaf || dropped_[at(input.node)] ||
               backward_reads.contains({input.node, node.stage});
      });
    }
  }

  static bool reads_within(const Node& reader, const Node& of) {
    return reader.phase != Phase::Update && unit_of(reader.block) == unit_of(of.block);
  }

  /// The value of a copy. Copies are made in the order of their originals, when the first of them
  /// is needed.
  ValueId again(ValueId v) {
    std::set<NodeId> needed;
    std::vector<NodeId> stack = {v.node};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!dropped_[at(id)] || copies_[{id, 0}].valid() || !needed.insert(id).second) continue;
      for (const ValueId input : rewrite_.from().node(id).inputs) stack.push_back(input.node);
    }
    for (const NodeId id : needed) copy(id);
    return copies_[v];
  }

  void copy(NodeId id) {
    Node node = rewrite_.from().node(id);
    ValueIds inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back(dropped_[at(input.node)] ? copies_[input] : rewrite_(input).id());
    node.phase = Phase::Backward;
    node.recompute = asked_of(node);
    node.remat_of = rewrite_({id, 0}).id().node;
    const std::vector<Value> values = rewrite_.to().copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i)
      copies_[{id, static_cast<std::int32_t>(i)}] = values[i].id();
  }

  Rewrite rewrite_;
  const std::vector<RecomputePin>& pins_;
  std::vector<bool> dropped_;  // by node: backward reads a copy
  ValueTable<ValueId> copies_;
};

}  // namespace

Graph recompute(const Graph& graph, const std::vector<RecomputePin>& pins) {
  return Recomputer(graph, pins).run();
}

}  // namespace tessera
