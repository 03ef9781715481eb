#include "tessera/ir/op_paths.h"

#include <map>
#include <set>
#include <utility>

#include "tessera/ir/builder.h"

namespace tessera {

std::vector<std::string> op_paths(const Graph& graph) {
  std::vector<std::string> out(graph.nodes().size());
  std::set<std::string> taken;
  // `number` 1 has the label alone; what is taken is passed over.
  const auto take = [&](std::size_t i, std::string_view label, int number) {
    const std::string_view block = graph.nodes()[i].block;
    do {
      out[i] = text(block, block.empty() ? "" : ".", label, number > 1 ? text(number) : "");
      ++number;
    } while (!taken.insert(out[i]).second);
  };
  const auto is_op = [](const Node& node) {
    return !node.op->traits.leaf && node.phase == Phase::Forward;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op == &kState || node.op == &kBatch) out[i] = std::get<std::string>(node.attrs[0]);
    if (is_op(node) && !node.name.empty()) take(i, std::string_view(node.name), 1);
  }
  std::map<std::pair<std::string_view, std::string_view>, int> met;  // by block and op
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!is_op(node)) continue;
    const int number = ++met[{std::string_view(node.block), node.op->name}];
    if (node.name.empty()) take(i, node.op->name, number);
  }
  return out;
}

std::string value_path(const Node& node) {
  if (node.name.empty()) return "";
  return node.block.empty() ? node.name.str() : text(node.block, ".", node.name);
}

}  // namespace tessera
