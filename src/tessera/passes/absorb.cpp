#include "tessera/passes/absorb.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

Graph add_onto(const Graph& graph) {
  Rewrite rewrite(graph);
  const Users users(graph);
  std::vector<bool> is_output(graph.nodes().size(), false);
  for (const Output& output : graph.outputs())
    is_output[static_cast<std::size_t>(output.value.node)] = true;
  // The term of a sum that is a scatter_add which nobody else reads.
  const auto scattered = [&](const Node& sum) {
    for (int i = 0; sum.op == &kAdd && i < 2; ++i) {
      const NodeId term = sum.inputs[static_cast<std::size_t>(i)].node;
      const Node& node = graph.node(term);
      if (node.op == &kScatterAdd && node.inputs.size() == 2 && node.phase == sum.phase &&
          node.results == sum.results && users(term).size() == 1 &&
          !is_output[static_cast<std::size_t>(term)] && sum.inputs[0] != sum.inputs[1])
        return i;
    }
    return -1;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& sum = graph.node(id);
    const int i = scattered(sum);
    const ValueId other = i < 0 ? ValueId{} : sum.inputs[static_cast<std::size_t>(1 - i)];
    if (i < 0 || graph.type(other) != sum.type()) {
      rewrite.copy(id);
      continue;
    }
    const Node& scatter = graph.node(sum.inputs[static_cast<std::size_t>(i)].node);
    Node onto = sum;
    onto.op = &kScatterAdd;
    onto.attrs = scatter.attrs;
    const std::vector<Value> made = rewrite.to().copy(
        std::move(onto),
        {rewrite(scatter.inputs[0]).id(), rewrite(scatter.inputs[1]).id(), rewrite(other).id()});
    rewrite.map({id, 0}, made[0]);
  }
  return rewrite.finish();
}

namespace {

/// When the loop reads states for the last time: by path, region and node.
using LastReads = std::map<std::string_view, std::pair<std::size_t, NodeId>>;

LastReads last_reads(const Program& program) {
  LastReads out;
  for (std::size_t r = 0; r < program.regions.size(); ++r) {
    const Graph& graph = program.regions[r].graph;
    if (!in_loop(program.regions[r].kind)) continue;
    for (NodeId id = 0; id < graph.size(); ++id) {
      for (const ValueId input : graph.node(id).inputs) {
        const Node& read = graph.node(input.node);
        if (read.op == &kState) out[std::get<std::string>(read.attrs[0])] = {r, id};
      }
    }
  }
  return out;
}

/// Which casts Update does without.
class Copies {
 public:
  Copies(const Graph& update, const LastReads& reads)
      : graph_(update), cast_of_(update.nodes().size(), -1) {
    for (NodeId id = 0; id < graph_.size(); ++id) find(id);
    std::map<ValueId, std::string_view> next;  // what becomes a state, as it is or moved
    for (const Output& output : graph_.outputs()) {
      if (output.kind == Output::Kind::Next) next[origin(output.value)] = output.name;
    }
    std::pair<std::size_t, NodeId> latest;
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      if (cast(id) < 0) continue;
      const auto read = reads.find(next[{cast(id), 0}]);
      if (read == reads.end() || read->second < latest)
        cast_of_[at(id)] = -1;
      else
        latest = read->second;
    }
  }

  /// The cast of an update's result 0; -1: none is absorbed.
  NodeId cast(NodeId update) const { return cast_of_[at(update)]; }

 private:
  void find(NodeId id) {
    const Node& cast = graph_.node(id);
    if (cast.op != &kCast || !is_16_bit(cast.type().dtype) || cast.inputs[0].index != 0) return;
    const NodeId update = cast.inputs[0].node;
    const Node& node = graph_.node(update);
    const bool can = node.op->attrs.find(kCopyDType.name) == static_cast<int>(node.attrs.size());
    if (can && memory_of(cast.results[0]) == memory_of(node.results[0])) cast_of_[at(update)] = id;
  }

  ValueId origin(ValueId value) const {
    const Node& node = graph_.node(value.node);
    return is_transfer(*node.op) || node.op->view != nullptr ? origin(node.inputs[0]) : value;
  }

  const Graph& graph_;
  std::vector<NodeId> cast_of_;
};

}  // namespace

Program copy_beside(Program program) {
  Graph& update = program.regions.back().graph;
  const Copies copies(update, last_reads(program));
  Rewrite rewrite(update);
  for (NodeId id = 0; id < update.size(); ++id) {
    if (rewrite.has({id, 0})) continue;  // a copy that is there
    const NodeId cast = copies.cast(id);
    if (cast < 0) {
      rewrite.copy(id);
      continue;
    }
    Node both = update.node(id);
    both.attrs = both.attrs.with(both.attrs.size(), update.node(cast).type().dtype);
    both.results.push_back(update.node(cast).results[0]);
    ValueIds inputs;
    for (const ValueId input : both.inputs) inputs.push_back(rewrite(input).id());
    const std::vector<Value> made = rewrite.to().copy(std::move(both), std::move(inputs));
    for (std::size_t i = 0; i + 1 < made.size(); ++i)
      rewrite.map({id, static_cast<std::int32_t>(i)}, made[i]);
    rewrite.map({cast, 0}, made.back());
  }
  update = rewrite.finish();
  return program;
}

}  // namespace tessera
