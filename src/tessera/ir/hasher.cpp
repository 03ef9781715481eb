#include "tessera/ir/hasher.h"

#include "tessera/base/hash.h"
#include "tessera/ir/blocks.h"

namespace tessera {

void Hasher::add(std::string_view line) {
  if (path_.empty() || line.find(path_) == std::string_view::npos) return add(hash64(line));
  add(hash64(replace_path(line, path_, "~")));
}

void Hasher::add(ValueId value) {
  add(static_cast<std::uint64_t>(value.node));
  add(static_cast<std::uint64_t>(value.index));
}

void Hasher::add(const AttrValue& value) {
  add(value.index());
  if (const auto* line = std::get_if<std::string>(&value)) return add(std::string_view(*line));
  if (const auto* i = std::get_if<std::int64_t>(&value)) return add(static_cast<std::uint64_t>(*i));
  if (const auto* x = std::get_if<double>(&value)) return add(std::bit_cast<std::uint64_t>(*x));
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const std::int64_t i : *list) add(static_cast<std::uint64_t>(i));
    return;
  }
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    for (const double x : *list) add(std::bit_cast<std::uint64_t>(x));
    return;
  }
  if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value)) {
    for (const Node& node : (*graph)->nodes()) {
      add_node(node);
      for (const ValueId input : node.inputs) add(input);
    }
    return;
  }
  add(std::string_view(to_text(value)));
}

void Hasher::add(const Placement& placement) {
  for (const auto& axes : placement.sharding.dims) {
    add(axes.size());
    for (const std::string& axis : axes) add(hash64(axis));
  }
  for (const Partial& partial : placement.sharding.partial) {
    add(hash64(partial.axis));
    add(static_cast<std::uint64_t>(partial.monoid));
  }
  add(static_cast<std::uint64_t>(placement.memory));
}

void Hasher::add(const Result& result) {
  add(static_cast<std::uint64_t>(result.type.dtype));
  for (const std::int64_t size : result.type.shape) add(static_cast<std::uint64_t>(size));
  add(hash64(result.type.layout.tag));
  if (result.placement) add(*result.placement);
}

/// All of a node but what it mentions.
void Hasher::add_node(const Node& node) {
  add(hash64(node.op->name));
  add(static_cast<std::uint64_t>(node.phase));
  add(std::string_view(node.block));
  add(std::string_view(node.name));
  for (const AttrValue& attr : node.attrs) add(attr);
  for (const Result& result : node.results) add(result);
}

}  // namespace tessera
