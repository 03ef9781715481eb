#include "tessera/ir/op_shard.h"

#include <map>
#include <utility>

#include "tessera/ir/builder.h"

namespace tessera {

std::string to_text(const Splits& splits) {
  std::vector<std::string> tensors;
  for (const std::vector<std::int64_t>& dims : splits) {
    std::vector<std::string> parts;
    for (const std::int64_t n : dims) parts.push_back(text(n));
    tensors.push_back(text("(", join(parts), ")"));
  }
  return text("(", join(tensors), ")");
}

std::string to_text(const OpShard& shard) {
  if (shard.in_layouts.empty()) return to_text(shard.ins);
  std::vector<std::string> layouts;
  for (const TensorLayout& layout : shard.in_layouts) layouts.push_back(to_text(layout));
  return text("(", join(layouts), ")");
}

std::vector<std::string> op_paths(const Graph& graph) {
  std::vector<std::string> out;
  std::map<std::pair<std::string_view, std::string_view>, int> met;  // by block and op
  for (const Node& node : graph.nodes()) {
    std::string& path = out.emplace_back();
    if (node.op == &kState || node.op == &kBatch) path = std::get<std::string>(node.attrs[0]);
    if (node.op->traits.leaf || node.phase != Phase::Forward) continue;
    const int number = ++met[{std::string_view(node.block), node.op->name}];
    path =
        !node.name.empty() ? node.name.str() : text(node.op->name, number > 1 ? text(number) : "");
    if (!node.block.empty()) path = text(node.block, ".", path);
  }
  return out;
}

}  // namespace tessera
