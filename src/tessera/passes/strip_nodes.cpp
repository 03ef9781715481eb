#include "tessera/passes/strip_nodes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/result_dtype.h"

namespace tessera {

namespace {

/// It can be added up in f32 instead: its op says of which dtype the result is.
bool can_be_wide(const Node& node) {
  return node.op->attrs.find(kResultDType.name) == static_cast<int>(node.attrs.size());
}

}  // namespace

bool is_rounded(const Node& node, const CutDims& cut) {
  return cut.outs[0] == kUncut && is_16_bit(node.type().dtype);
}

StripNodes::StripNodes(const Graph& graph, ValueId value)
    : graph_(graph),
      value_(value),
      users_(graph),
      dims_(graph, kUncut),
      cuts_(graph.nodes().size()) {}

bool StripNodes::find(int dim) {
  dims_[value_] = dim;
  open_.push_back(value_.node);
  while (!open_.empty()) {
    const NodeId id = open_.back();
    open_.pop_back();
    if (!cuts_[at(id)] && !add(id)) return false;
    if (open_.empty()) add_between();
  }
  return complete();
}

bool StripNodes::is_read_outside(ValueId v) const {
  const auto reads = [&](NodeId user) {
    return !has(user) &&
           std::ranges::find(graph_.node(user).inputs, v) != graph_.node(user).inputs.end();
  };
  return std::ranges::any_of(users_(v.node), reads) ||
         std::ranges::any_of(graph_.outputs(),
                             [&](const Output& output) { return output.value == v; });
}

std::int64_t StripNodes::wide_bytes() const {
  std::int64_t out = 0;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (has(id) && is_rounded(graph_.node(id), cut(id)))
      out += graph_.node(id).type().numel() * size_of(DType::F32);
  }
  return out;
}

std::int64_t StripNodes::operand_bytes(bool once) const {
  std::int64_t sums = 0;
  std::set<ValueId> operands;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!has(id)) continue;
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (cut(id).outs[i] == kUncut) sums += node.results[i].type.bytes();
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (cut(id).ins[i] == kUncut && !has(input.node) && is_free_after(input, once))
        operands.insert(input);
    }
  }
  std::int64_t bytes = 0;
  for (const ValueId operand : operands) bytes += graph_.type(operand).bytes();
  return std::min(bytes, sums);
}

bool StripNodes::is_free_after(ValueId v, bool once) const {
  const Node& node = graph_.node(v.node);
  if (is_read_outside(v)) return false;
  if (node.op != &kState) return !node.op->traits.leaf;
  return once && graph_.find_state(std::get<std::string>(node.attrs[0]))->role == Role::Copy;
}

bool StripNodes::is_large(ValueId v) const {
  return graph_.type(v).bytes() * 2 >= graph_.type(value_).bytes();
}

/// Along the factor by which one of its values is cut already.
bool StripNodes::add(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op->traits.leaf || is_transfer(*node.op) || !may_be_cut(*node.op)) return false;
  const Factors rule = graph_.factors(id);
  const int factor = factor_of(id, rule);
  std::optional<CutDims> cut = factor < 0 ? std::nullopt : cut_along(graph_.call(id), rule, factor);
  if (!cut) return false;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const ValueId input = node.inputs[at(i)];
    const int dim = cut->ins[at(i)];
    if (dim != kUncut && is_padded(input, dim)) return false;
    if (dim == kUncut || graph_.node(input.node).op->traits.leaf || !is_large(input)) continue;
    dims_[input] = dim;
    open_.push_back(input.node);
  }
  for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
    const ValueId result{id, i};
    const int dim = cut->outs[at(i)];
    const bool rounded = dim == kUncut && is_16_bit(graph_.type(result).dtype);
    if ((rounded && !can_be_wide(node)) || (dim != kUncut && is_padded(result, dim))) return false;
    dims_[result] = dim;
    if (dim == kUncut || !is_large(result)) continue;
    for (const NodeId user : users_(id)) {
      if (std::ranges::find(graph_.node(user).inputs, result) != graph_.node(user).inputs.end())
        open_.push_back(user);
    }
  }
  cuts_[at(id)] = *std::move(cut);
  return true;
}

int StripNodes::factor_of(NodeId id, const Factors& rule) const {
  const Node& node = graph_.node(id);
  for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
    if (dims_[{id, i}] != kUncut) return factor_of_dim(rule.outs[at(i)], dims_[{id, i}]);
  }
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const ValueId input = node.inputs[at(i)];
    if (dims_[input] != kUncut) return factor_of_dim(rule.ins[at(i)], dims_[input]);
  }
  return -1;
}

bool StripNodes::is_padded(ValueId v, int dim) const {
  const Result& result = graph_.result(v);
  const std::vector<std::int64_t> padded =
      result.placement ? padded_dims(result, graph_.mesh()) : std::vector<std::int64_t>{};
  return std::ranges::find(padded, dim) != padded.end();
}

/// Opens the first node that lies on a way from nodes in strips to others of these.
void StripNodes::add_between() {
  before_.assign(graph_.nodes().size(), false);
  for (NodeId id = graph_.size() - 1; id >= 0; --id) {
    before_[at(id)] = before_[at(id)] && !has(id);
    if (!has(id) && !before_[at(id)]) continue;
    for (const ValueId input : graph_.node(id).inputs) before_[at(input.node)] = true;
  }
  std::vector<bool> behind(graph_.nodes().size(), false);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    behind[at(id)] = has(id) || std::ranges::any_of(
                                    graph_.node(id).inputs,
                                    [&](ValueId input) -> bool { return behind[at(input.node)]; });
    if (behind[at(id)] && before_[at(id)]) return open_.push_back(id);
  }
}

/// True if every reader inside reads a value as it is cut and a sum when it is complete, and large
/// values are read inside only. Nodes before the strips may not wait for a message: other stages
/// may wait for values that the region sends meanwhile.
bool StripNodes::complete() const {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (!has(id)) {
      if (before_[at(id)] && node.op == &kReceive) return false;
      continue;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      const int dim = cut(id).ins[i];
      if (has(input.node) && (dim == kUncut || dim != cut(input.node).outs[at(input.index)]))
        return false;
    }
    for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
      const ValueId result{id, i};
      const bool rows = cut(id).outs[at(i)] != kUncut;
      if (rows && is_large(result) && is_read_outside(result)) return false;
    }
  }
  return true;
}

}  // namespace tessera
