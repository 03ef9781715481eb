#include "tessera/plan/graph_dump.h"

#include "tessera/comm/group.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/plan/shards.h"

namespace tessera {

namespace {

std::string numbers(const std::vector<std::string>& words) { return text("(", join(words), ")"); }

std::string tensor_text(const TensorType& type) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : type.shape) sizes.push_back(text(size));
  std::string dtype(to_text(type.dtype));
  switch (type.dtype) {
    case DType::F32: dtype = "Float32"; break;
    case DType::F64: dtype = "Float64"; break;
    case DType::I32: dtype = "Int32"; break;
    case DType::I64: dtype = "Int64"; break;
    case DType::Bool: dtype = "Bool"; break;
    default: break;
  }
  return text("<Tensor[", dtype, "], ", numbers(sizes), ">");
}

template <typename T>
std::string list_text(const std::vector<T>& list) {
  std::vector<std::string> words;
  for (const T& n : list) words.push_back(text(n));
  return numbers(words);
}

std::string attr_text(const AttrValue& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) return text(*n);
  if (const auto* x = std::get_if<double>(&value)) return text(*x);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* line = std::get_if<std::string>(&value)) return *line;
  if (const auto* dtype = std::get_if<DType>(&value)) return std::string(to_text(*dtype));
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value)) return list_text(*ints);
  if (const auto* floats = std::get_if<std::vector<double>>(&value)) return list_text(*floats);
  return "a graph";
}

std::string_view phase_text(Phase phase) {
  return phase == Phase::Forward ? "forward" : phase == Phase::Backward ? "backward" : "update";
}

/// A node's label: its name, or the path of an input.
std::string label_of(const Node& node) {
  if (node.op == &kState || node.op == &kBatch) return std::get<std::string>(node.attrs[0]);
  return node.name.empty() ? std::string(node.op->name) : node.name.str();
}

/// The line of a node, with `more` words in braces, and the lines below it.
std::string node_text(const Graph& graph, NodeId id, const std::string& more) {
  const Node& node = graph.node(id);
  std::vector<std::string> inputs, in_types, out_types, attrs, from, to;
  for (const ValueId v : node.inputs) {
    inputs.push_back(to_text(v));
    in_types.push_back(tensor_text(graph.type(v)));
    from.push_back(to_text(*graph.result(v).placement));
  }
  for (const Result& result : node.results) {
    out_types.push_back(tensor_text(result.type));
    to.push_back(to_text(*result.placement));
  }
  for (std::size_t i = 0; i < node.attrs.size(); ++i)
    attrs.push_back(text(node.op->attrs[i].name, ": ", attr_text(node.attrs[i])));
  std::string out = text("%", id, "(", label_of(node), ") = ", node.op->name, numbers(inputs));
  if (!attrs.empty()) out += text(" {", join(attrs), "}");
  out += text(more, "\n    : ", numbers(in_types), " -> ", numbers(out_types));
  out += text("\n    # lies: ", numbers(from), " -> ", numbers(to));
  out += text("\n    # scope: (", phase_text(node.phase), node.block.empty() ? "" : "/", node.block,
              ")");
  if (node.where.line > 0)
    out += text("\n    # In file ", node.where.file, "(", node.where.line, ")");
  return out + "\n";
}

}  // namespace

std::string strategies_text(const Graph& placed) {
  std::string out = text("# mesh: ", placed.mesh(), "\n");
  for (NodeId id = 0; id < placed.size(); ++id) {
    const Node& node = placed.node(id);
    out += node_text(placed, id,
                     node.op->traits.leaf || node.op->traits.inserted
                         ? ""
                         : text(" {in_strategy: ", to_text(in_strategy(placed, id)), "}"));
  }
  return out;
}

std::string execution_text(const std::vector<PassGraph>& regions, int rank) {
  std::string out;
  for (const PassGraph& region : regions) {
    const Graph& graph = *region.graph;
    if (graph.size() == 0) continue;
    out += text("# rank ", rank, ", ", region.region, ", mesh: ", graph.mesh(), "\n");
    const RankShards shards(graph.mesh(), rank);
    for (NodeId id = 0; id < graph.size(); ++id) {
      std::string more;
      if (graph.node(id).op->traits.exchanges) {
        const Call call = shards.transfer(graph, id);
        const Group& group = call.transfer->group;
        std::vector<std::string> ranks;
        for (const int r : group.ranks) ranks.push_back(text(r));
        more = text(" {group_ranks: ", join(ranks, "-"), ", rank_list: ", numbers(ranks),
                    ", bytes: ", bytes_sent(call.transfer->collective, group.size()), "}");
      }
      out += node_text(graph, id, more);
    }
  }
  return out;
}

Splits in_strategy(const Graph& placed, NodeId id) {
  Splits out;
  for (const ValueId input : placed.node(id).inputs) {
    std::vector<std::int64_t>& dims = out.emplace_back();
    for (const std::vector<std::string>& axes : placed.result(input).placement->sharding.dims) {
      std::int64_t n = 1;
      for (const std::string& axis : axes) {
        if (axis != kMicrobatchAxis) n *= placed.mesh().size(axis);
      }
      dims.push_back(n);
    }
  }
  return out;
}

}  // namespace tessera
