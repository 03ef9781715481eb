#include "tessera/search/gradient_flow.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"

namespace tessera {

GradientFlow::GradientFlow(const Graph& graph)
    : graph_(graph), needed_(graph.nodes().size(), false), flows_(graph), read_back_(graph) {
  std::vector<bool> read(graph.nodes().size(), false);  // by another forward node
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    any_ = any_ || node.phase == Phase::Backward;
    needed_[at(id)] = node.op == &kState && is_float(node.type().dtype);
    for (const ValueId input : node.inputs) {
      if (node.phase == Phase::Forward) {
        read[at(input.node)] = true;
        if (needed_[at(input.node)] && is_float(node.type().dtype)) needed_[at(id)] = true;
      } else if (node.phase == Phase::Backward) {
        read_back_[input] = 1;
      }
    }
  }
  for (NodeId id = graph.size(); any_ && id-- > 0;) {
    const Node& node = graph.node(id);
    if (node.phase != Phase::Forward || node.op->traits.leaf || !needed_[at(id)]) continue;
    // The loss, and whatever else ends in a scalar.
    if (!read[at(id)] && node.type().ndim() == 0) flows_[{id, 0}] = 1;
    const std::vector<bool> wanted = wants(id);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) flows_[node.inputs[i]] = 1;
    }
  }
}

std::vector<bool> GradientFlow::flows(NodeId id) const {
  std::vector<bool> out;
  const auto n = static_cast<std::int32_t>(graph_.node(id).results.size());
  for (std::int32_t r = 0; r < n; ++r) out.push_back(flows_[{id, r}] != 0);
  return out;
}

std::vector<bool> GradientFlow::read_back(NodeId id) const {
  std::vector<bool> out;
  const auto n = static_cast<std::int32_t>(graph_.node(id).results.size());
  for (std::int32_t r = 0; r < n; ++r) out.push_back(read_back_[{id, r}] != 0);
  return out;
}

std::vector<bool> GradientFlow::wants(NodeId id) const {
  const Node& node = graph_.node(id);
  const std::vector<bool> through = flows(id);
  const bool comes =
      node.op->grad != nullptr && std::find(through.begin(), through.end(), true) != through.end();
  std::vector<bool> out;
  for (const ValueId input : node.inputs)
    out.push_back(comes && needed_[at(input.node)] && is_float(graph_.type(input).dtype));
  return out;
}

}  // namespace tessera
