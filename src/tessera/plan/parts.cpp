/// Parts: operands that are computed where the value lies that will hold them, as gradients in a
/// bucket. Then nothing is copied.

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/plan/values.h"

namespace tessera {

/// The buffer of a value that holds its operands, with those in it that can be computed there. A
/// call copies the others, if there are any.
void ProgramValues::place_parts(int region, NodeId node) {
  const Graph& graph = regions_[at(region)].graph;
  const OpCall call = graph.call(node);
  const int whole = value(region, {node, 0});
  new_buffer(whole);
  bool all = true;
  for (int i = 0; i < call.num_in(); ++i) {
    const int operand = value(region, graph.node(node).inputs[at(i)]);
    all = place_part(operand, whole, call.op().part(call, i)) && all;
  }
  views_[at(region)][at(node)] = all;
}

/// False where the value has a place of its own: it comes from outside, leaves, is under way to or
/// from another stage, becomes a state, or is a part already.
bool ProgramValues::place_part(int value, int whole, std::int64_t offset_elements) {
  using Kind = StoredValue::Kind;
  StoredValue& v = values_[at(value)];
  const int buffer = values_[at(whole)].buffer;
  const bool accumulates = v.kind == Kind::Accumulator;
  if (v.buffer >= 0 || v.leaves || v.held || (v.kind != Kind::Computed && !accumulates) ||
      !v.result->type.layout.plain() || memory_of(*v.result) != buffers_[at(buffer)].memory)
    return false;
  if (!accumulates && (regions_[at(v.region)].graph.node(v.id.node).op->traits.leaf ||
                       next_of_.contains({v.region, v.id.node, v.id.index})))
    return false;
  v.part = true;
  v.offset_elements = offset_elements;
  share(value, buffer);
  if (!accumulates) place_source(v, whole);
  return true;
}

/// `part` is a slice of a larger buffer. Where its node is a view of its operand, or may work in
/// place on it, the operand is placed in that slice too; otherwise a call copies into it.
void ProgramValues::place_source(const StoredValue& part, int whole) {
  const Graph& graph = regions_[at(part.region)].graph;
  const Node& node = graph.node(part.id.node);
  const auto source = [&](int operand) { return value(part.region, node.inputs[at(operand)]); };
  const std::int64_t begin = part.offset_elements;
  if (node.op->view != nullptr) {
    const StoredValue& from = values_[at(source(0))];
    const auto view = node.op->view(graph.call(part.id.node), from.strides);
    const bool same = view && view->offset == 0 && view->strides == part.strides &&
                      from.result->type.numel() == part.result->type.numel();
    if (same) views_[at(part.region)][at(part.id.node)] = place_part(source(0), whole, begin);
    return;
  }
  for (const InPlace& pair : node.op->in_place) {
    if (pair.result != part.id.index || pair.operand >= static_cast<int>(node.inputs.size()))
      continue;
    const StoredValue& from = values_[at(source(pair.operand))];
    if (from.uses.size() == 1 && from.result->type == part.result->type &&
        place_part(source(pair.operand), whole, begin))
      return;
  }
}

std::vector<BucketUse> ProgramValues::buckets() const {
  std::vector<BucketUse> out;
  for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
    const Region& region = regions_[at(r)];
    for (NodeId id = 0; id < region.graph.size(); ++id) {
      const Node& node = region.graph.node(id);
      if (node.op->part == nullptr) continue;
      const OpCall call = region.graph.call(id);
      const int buffer = values_[at(value(r, {id, 0}))].buffer;
      BucketUse bucket{region.kind, std::ssize(node.inputs), node.type().bytes()};
      for (int i = 0; i < call.num_in(); ++i) {
        const StoredValue& v = values_[at(value(r, node.inputs[at(i)]))];
        const bool there =
            v.part && v.buffer == buffer && v.offset_elements == node.op->part(call, i);
        if (!there) bucket.copied_bytes += v.result->type.bytes();
      }
      out.push_back(bucket);
    }
  }
  return out;
}

}  // namespace tessera
