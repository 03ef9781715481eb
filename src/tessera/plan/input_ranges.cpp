#include "tessera/plan/input_ranges.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

/// Ops whose results have no numbers but those of their operands, and how many of these there are;
/// 0: all of them.
constexpr std::pair<const OpDef*, std::size_t> kMovesNumbers[] = {
    {&kReshape, 1}, {&kTranspose, 1}, {&kSlice, 1}, {&kDynamicSlice, 1}, {&kConcat, 0}};

/// The leaves from which the numbers of a value come as they are, each once; `seen`, by node.
void find_leaves(const Graph& graph, ValueId value, std::set<NodeId>& seen,
                 std::vector<const Node*>& out) {
  if (!seen.insert(value.node).second) return;
  const Node& node = graph.node(value.node);
  const auto* const moves =
      std::ranges::find_if(kMovesNumbers, [&](const auto& op) { return op.first == node.op; });
  if (moves == std::end(kMovesNumbers)) return out.push_back(&node);
  const std::size_t read = moves->second == 0 ? node.inputs.size() : moves->second;
  for (std::size_t i = 0; i < read; ++i) find_leaves(graph, node.inputs[i], seen, out);
}

/// The path of a state, as it is or in another dtype; empty: the value is none.
std::string_view state_path(const Graph& graph, ValueId value) {
  const Node* node = &graph.node(value.node);
  while (node->op == &kCast) node = &graph.node(node->inputs[0].node);
  return node->op == &kState ? std::string_view(std::get<std::string>(node->attrs[0])) : "";
}

void narrow(InputRanges& ranges, const std::string& name, const InputRange& range) {
  const auto [known, is_new] = ranges.try_emplace(name, range);
  if (is_new) return;
  // A part of the input may be labels, and another one ids.
  const auto ignored = known->second.ignored ? known->second.ignored : range.ignored;
  if (range.values < known->second.values) known->second = range;
  known->second.ignored = ignored;
}

}  // namespace

InputRanges input_ranges(const Graph& graph) {
  InputRanges out;
  const auto add = [&](ValueId ids, const InputRange& range) {
    std::vector<const Node*> leaves;
    std::set<NodeId> seen;
    find_leaves(graph, ids, seen, leaves);
    for (const Node* leaf : leaves) {
      if (leaf->op == &kBatch) narrow(out, std::get<std::string>(leaf->attrs[0]), range);
    }
  };
  for (const Node& node : graph.nodes()) {
    if (node.op == &kCrossEntropy) {
      const std::int64_t classes = graph.type(node.inputs[0]).shape.back();
      add(node.inputs[1], {classes, std::get<std::int64_t>(node.attrs[0]),
                           text("labels of a cross_entropy over ", classes, " classes")});
    } else if (node.op == &kGather) {
      const std::string_view table = state_path(graph, node.inputs[1]);
      if (table.empty()) continue;
      const auto dim = static_cast<int>(std::get<std::int64_t>(node.attrs[0]));
      const std::int64_t rows = graph.type(node.inputs[1]).shape[dim];
      add(node.inputs[0], {rows, {}, text("ids of the table '", table, "' of ", rows, " rows")});
    }
  }
  return out;
}

}  // namespace tessera
