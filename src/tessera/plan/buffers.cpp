/// Which values of a program share a buffer.

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"
#include "tessera/plan/values.h"

namespace tessera {

int ProgramValues::new_buffer(int value) {
  StoredValue& v = values_[at(value)];
  Buffer buffer;
  if (v.kind != StoredValue::Kind::Constant) buffer.memory = memory_of(*v.result);
  buffer.bytes = v.result->type.bytes();
  buffer.first = v.first;
  buffer.last = v.last;
  if (v.kind == StoredValue::Kind::State) buffer.home = Buffer::Home::State;
  if (v.kind == StoredValue::Kind::Constant) buffer.home = Buffer::Home::Constant;
  buffer.in_place_allowed =
      v.kind == StoredValue::Kind::Computed || v.kind == StoredValue::Kind::Accumulator;
  buffer.values = {value};
  v.buffer = static_cast<int>(buffers_.size());
  if (v.held) hold(buffer);
  buffers_.push_back(std::move(buffer));
  return v.buffer;
}

/// A ring is filled by one region. A value that another region makes in place lies in it only as
/// long as that region runs.
bool ProgramValues::may_share(const StoredValue& value, const Buffer& buffer) const {
  if (memory_of(*value.result) != buffer.memory) return false;
  const StoredValue& root = values_[at(buffer.values[0])];
  const bool filled_in_loop =
      root.kind == StoredValue::Kind::Computed && in_loop(regions_[at(root.region)].kind);
  if (!filled_in_loop) return true;
  // Else the next one arrives there, beside kernels, while this one is being sent.
  const OpDef& made_by = *regions_[at(root.region)].graph.node(root.id.node).op;
  const bool arrives = root.received || made_by.traits.exchanges || &made_by == &kCopy;
  if (value.sent && arrives) return false;
  if (!value.held && !buffer.held) return true;
  return value.region == root.region || (!value.held && readers(value).size() == 1);
}

void ProgramValues::share(int value, int buffer) {
  Buffer& b = buffers_[at(buffer)];
  StoredValue& v = values_[at(value)];
  b.values.push_back(value);
  b.first = std::min(b.first, v.first);
  b.last = std::max(b.last, v.last);
  v.buffer = buffer;
  const StoredValue& root = values_[at(b.values[0])];
  if (b.held || (v.held && root.kind == StoredValue::Kind::Computed &&
                 in_loop(regions_[at(root.region)].kind)))
    hold(b);
}

/// Makes the buffer as deep as the values in it need. The first value is the one that fills it; the
/// receive of a message is posted ahead.
void ProgramValues::hold(Buffer& buffer) {
  std::set<int> all;
  for (const int v : buffer.values) all.merge(readers(values_[at(v)]));
  const StoredValue& root = values_[at(buffer.values[0])];
  buffer.held = true;
  buffer.depth = order_.depth(root.region, all, root.ahead);
}

void ProgramValues::assign_buffers() {
  for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
    const Graph& graph = regions_[at(r)].graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op->part != nullptr) place_parts(r, id);
    }
  }
  const auto has_buffer = [&](int v) { return values_[at(v)].buffer >= 0; };
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    if (values_[at(v)].kind != StoredValue::Kind::Computed && !has_buffer(v)) new_buffer(v);
  }
  for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
    const Graph& graph = regions_[at(r)].graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op == &kReceive) new_buffer(value(r, {id, 0}));
      if (node.op->traits.leaf) continue;
      if (!has_buffer(value(r, {id, 0})) && try_view(r, id)) continue;
      for (int i = 0; i < static_cast<int>(node.results.size()); ++i) {
        const int v = value(r, {id, i});
        if (!has_buffer(v) && !try_state(r, id, i) && !try_in_place(r, id, i)) new_buffer(v);
      }
    }
  }
}

/// True where every consumer reads the value at its strides; a dense value is read by all.
bool ProgramValues::accepted_by_all(int value, bool dense) const {
  const StoredValue& v = values_[at(value)];
  if (dense) return true;
  if (v.leaves || v.strides.back() != 1) return false;
  return std::all_of(v.uses.begin(), v.uses.end(), [&](const ValueUse& use) {
    const Node& node = regions_[at(use.region)].graph.node(use.node);
    // A product with packed weights is one product: rows that do not lie at one stride would need
    // several.
    const bool packed = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return !regions_[at(use.region)].graph.type(v).layout.plain();
    });
    return !packed && device_.accepts_strides(*node.op, use.operand);
  });
}

bool ProgramValues::try_view(int region, NodeId node) {
  const Graph& graph = regions_[at(region)].graph;
  const Node& n = graph.node(node);
  if (!shares_ || n.op->view == nullptr) return false;
  const int from = value(region, n.inputs[0]), to = value(region, {node, 0});
  StoredValue& source = values_[at(from)];
  StoredValue& target = values_[at(to)];
  if (source.buffer < 0) return false;
  const auto view = n.op->view(graph.call(node), source.strides);
  if (!view) return false;
  const bool dense = view->strides == n.type().shape.strides();
  const Shape kept = target.strides;
  target.strides = view->strides;
  // A state that is updated in place may change while the view lives: copy it.
  const bool of_state = source.kind == StoredValue::Kind::State && target.last > time_.loop_end;
  // An output is read after states are stored, so not even a view of a view may lie in a state.
  const bool leaves_state = target.leaves && buffers_[at(source.buffer)].home != Buffer::Home::Work;
  if (of_state || leaves_state || !may_share(target, buffers_[at(source.buffer)]) ||
      !accepted_by_all(to, dense) ||
      (target.leaves && source.kind != StoredValue::Kind::Computed)) {
    target.strides = kept;
    return false;
  }
  target.offset_elements = source.offset_elements + view->offset;
  share(to, source.buffer);
  views_[at(region)][at(node)] = true;
  return true;
}

/// True where nobody reads what the buffer holds after the node has begun, but the node itself.
bool ProgramValues::dies_in(const Buffer& buffer, int region, NodeId node) const {
  const Busy& busy = time_.of(region, node);
  const auto read_before = [&](const ValueUse& use) {
    const bool itself = use.region == region && use.node == node;
    return itself || time_.of(use.region, use.node).last <= busy.first;
  };
  return std::all_of(buffer.values.begin(), buffer.values.end(), [&](int v) {
    const StoredValue& value = values_[at(v)];
    // An accumulator is alive to the end of the loop; as a part it is so in the whole.
    if (value.part) return std::ranges::all_of(value.uses, read_before);
    // Where nobody reads a state, it does not matter where its node stands.
    if (value.kind == StoredValue::Kind::State && value.uses.empty()) return !value.leaves;
    return value.last <= busy.first ||
           (value.last == busy.last && std::ranges::all_of(value.uses, read_before));
  });
}

/// The next value of a state is computed where the state lies, if the old one is read by nobody any
/// more.
bool ProgramValues::try_state(int region, NodeId node, int result) {
  const auto next = next_of_.find({region, node, result});
  if (next == next_of_.end()) return false;
  const auto state = states_.find(next->second);
  if (state == states_.end()) return false;
  const StoredValue& old = values_[at(state->second)];
  const int to = value(region, {node, result});
  const std::int32_t now = time_.of(region, node).first;
  const auto read_later = [&](int v) {
    const StoredValue& other = values_[at(v)];
    return other.leaves || (!other.uses.empty() && other.last >= now);
  };
  const Buffer& buffer = buffers_[at(old.buffer)];
  if (old.result->type != values_[at(to)].result->type ||
      memory_of(*values_[at(to)].result) != buffer.memory ||
      std::any_of(buffer.values.begin(), buffer.values.end(), read_later)) {
    return false;
  }
  share(to, old.buffer);
  return true;
}

bool ProgramValues::try_in_place(int region, NodeId node, int result) {
  if (!shares_) return false;
  const Graph& graph = regions_[at(region)].graph;
  const Node& n = graph.node(node);
  const int to = value(region, {node, result});
  for (const InPlace& pair : n.op->in_place) {
    if (pair.result != result || pair.operand >= static_cast<int>(n.inputs.size())) continue;
    const int from = value(region, n.inputs[at(pair.operand)]);
    const StoredValue& source = values_[at(from)];
    if (source.buffer < 0) continue;
    Buffer& buffer = buffers_[at(source.buffer)];
    if (source.result->type != n.results[at(result)].type || source.offset_elements != 0 ||
        source.strides != source.result->type.shape.strides() || !dies_in(buffer, region, node) ||
        !may_share(values_[at(to)], buffer)) {
      continue;
    }
    // No other operand may lie in the same buffer: it would be read after it is overwritten.
    const auto same_buffer = [&](ValueId v) {
      return values_[at(value(region, v))].buffer == source.buffer;
    };
    if (std::count_if(n.inputs.begin(), n.inputs.end(), same_buffer) != 1) continue;
    const auto next = next_of_.find({region, node, result});
    const bool next_of_state = buffer.home == Buffer::Home::State && next != next_of_.end() &&
                               next->second == values_[at(buffer.values[0])].name;
    if (!buffer.in_place_allowed && !next_of_state) continue;
    // Another result of this node may have taken the buffer.
    const bool taken = std::any_of(buffer.values.begin(), buffer.values.end(), [&](int v) {
      return values_[at(v)].region == region && values_[at(v)].id.node == node;
    });
    if (taken) continue;
    share(to, source.buffer);
    return true;
  }
  return false;
}

}  // namespace tessera
