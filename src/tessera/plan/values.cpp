#include "tessera/plan/values.h"

#include <algorithm>

#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"

namespace tessera {

ProgramValues::ProgramValues(const Program& program, const Timeline& time, const Device& device,
                             bool shares)
    : regions_(program.regions),
      time_(time),
      device_(device),
      shares_(shares),
      order_(program),
      microbatches_(program.mesh().size(kMicrobatchAxis)) {
  for (const Region& region : regions_) {
    views_.emplace_back(region.graph.nodes().size(), false);
    index_.emplace_back(region.graph, -1);
  }
  collect(program);
  find_uses();
  find_held();
  find_lifetimes();
  assign_buffers();
}

int ProgramValues::value(int region, ValueId id) const {
  const int found = index_[at(region)][id];
  check(found >= 0, "plan: a value without storage: ", id);
  return found;
}

std::optional<TimeSpan> ProgramValues::idle(const std::string& state) const {
  const auto found = states_.find(state);
  if (!shares_ || found == states_.end()) return std::nullopt;
  const StoredValue& root = values_[at(found->second)];
  std::int32_t written = time_.end;
  for (const int v : buffers_[at(root.buffer)].values) {
    const StoredValue& value = values_[at(v)];
    const bool computed = &value != &root && !is_view(value.region, value.id.node);
    if (computed) written = std::min(written, value.first);
  }
  std::int32_t read = -1;
  for (const int v : buffers_[at(root.buffer)].values) {
    const StoredValue& value = values_[at(v)];
    if (value.first < written && !value.uses.empty()) read = std::max(read, value.last);
  }
  // Another micro-batch, or an action that runs later than its place in time says, may read it.
  const bool again = microbatches_ > 1 || !order_.ends_in_order();
  if (again && read < time_.loop_end) read = time_.loop_end;
  if (written == time_.end || read < 0 || read + 1 >= written) return std::nullopt;
  return TimeSpan{read + 1, written - 1};
}

void ProgramValues::collect(const Program& program) {
  using Kind = StoredValue::Kind;
  for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
    const Graph& graph = regions_[at(r)].graph;
    const auto add = [&](Kind kind, ValueId id, std::string name) {
      StoredValue value;
      value.kind = kind;
      value.result = &graph.result(id);
      value.name = std::move(name);
      value.region = r;
      value.id = id;
      value.strides = value.result->type.shape.strides();
      values_.push_back(std::move(value));
      return static_cast<int>(values_.size()) - 1;
    };
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      const auto named = [&](Kind kind, std::unordered_map<std::string, int>& known) {
        const std::string& name = std::get<std::string>(node.attrs[0]);
        const auto found = known.find(name);
        const int v = found != known.end() ? found->second : add(kind, {id, 0}, name);
        known.emplace(name, v);
        index_[at(r)][{id, 0}] = v;
      };
      if (node.op == &kState) {
        named(Kind::State, states_);
      } else if (node.op == &kBatch) {
        named(Kind::Batch, batches_);
      } else if (node.op == &kSlot) {
        const auto found = slots_.find(std::get<std::string>(node.attrs[0]));
        check(found != slots_.end(), "plan: no earlier region fills slot ",
              std::get<std::string>(node.attrs[0]));
        index_[at(r)][{id, 0}] = found->second;
      } else {
        const Kind kind = node.op == &kConstant ? Kind::Constant : Kind::Computed;
        for (int i = 0; i < static_cast<int>(node.results.size()); ++i)
          index_[at(r)][{id, i}] = add(kind, {id, i}, "");
        if (node.op == &kReceive) {
          values_.back().received = true;
          values_.back().ahead = program.message(std::get<std::string>(node.attrs[0])).ahead;
        }
      }
    }
    for (const Output& output : graph.outputs()) {
      if (output.kind == Output::Kind::Next) becomes_next(r, output);
      if (output.kind == Output::Kind::Slot) slots_[output.name] = value(r, output.value);
      if (output.kind == Output::Kind::Accumulate) {
        const int into = add(Kind::Accumulator, output.value, output.name);
        slots_[output.name] = into;
        accumulations_.push_back({r, output.value, into});
      }
    }
  }
}

/// The value, and what it is made of in place. An earlier region may have computed it.
void ProgramValues::becomes_next(int region, const Output& output) {
  for (ValueId v = output.value;;) {
    const StoredValue& stored = values_[at(value(region, v))];
    if (stored.kind == StoredValue::Kind::Computed) region = stored.region, v = stored.id;
    if (microbatches_ > 1 && in_loop(regions_[at(region)].kind)) return;  // computed again
    next_of_.emplace(std::tuple(region, v.node, v.index), output.name);
    const Node& node = regions_[at(region)].graph.node(v.node);
    if (node.inputs.size() != 1 || node.op->in_place[0].result != 0) return;
    v = node.inputs[0];
  }
}

void ProgramValues::find_uses() {
  for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
    const Graph& graph = regions_[at(r)].graph;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
        values_[at(value(r, node.inputs[at(i)]))].uses.push_back({r, id, i});
      }
    }
    for (const Output& output : graph.outputs()) {
      StoredValue& v = values_[at(value(r, output.value))];
      if (output.kind != Output::Kind::Slot) v.leaves = true;
      if (output.kind == Output::Kind::Send) v.sent = true;
    }
  }
}

std::set<int> ProgramValues::readers(const StoredValue& value) const {
  std::set<int> out = {value.region};
  for (const ValueUse& use : value.uses) out.insert(use.region);
  if (microbatches_ > 1) std::erase_if(out, [&](int r) { return !in_loop(regions_[at(r)].kind); });
  return out;
}

/// A message is under way while other actions run.
void ProgramValues::find_held() {
  for (StoredValue& v : values_) {
    if (v.kind != StoredValue::Kind::Computed || !in_loop(regions_[at(v.region)].kind)) continue;
    const bool stays =
        std::ranges::all_of(v.uses, [&](const ValueUse& use) { return use.region == v.region; });
    v.held = v.sent || v.received || (!stays && !order_.in_turn(v.region, readers(v)));
    const bool once = microbatches_ == 1 || std::ranges::all_of(v.uses, [&](const ValueUse& use) {
                        return in_loop(regions_[at(use.region)].kind);
                      });
    check(once || !v.held, "a value of every micro-batch is read after the last one: ",
          describing(regions_[at(v.region)].graph, v.id.node));
  }
}

void ProgramValues::find_lifetimes() {
  for (StoredValue& v : values_) {
    const bool before_loop =
        !in_loop(regions_[at(v.region)].kind) || v.kind == StoredValue::Kind::Batch;
    if (v.kind == StoredValue::Kind::Accumulator) {
      v.first = v.last = time_.loop_begin;
    } else if (v.kind != StoredValue::Kind::Batch) {
      v.first = time_.of(v.region, v.id.node).first;
      v.last = time_.of(v.region, v.id.node).last;
    }
    for (const ValueUse& use : v.uses) {
      const bool again =
          before_loop && in_loop(regions_[at(use.region)].kind);  // every micro-batch reads it
      v.last = std::max(v.last, again ? time_.loop_end : time_.of(use.region, use.node).last);
    }
    if (v.kind == StoredValue::Kind::Accumulator) v.last = std::max(v.last, time_.loop_end);
    if (v.held) {
      // The first receives are posted when Begin ends, the last sends awaited when Update begins.
      v.first = v.received ? time_.ends.front() : time_.loop_begin;
      v.last = std::max(v.last, v.sent ? time_.begins.back() : time_.loop_end);
    } else if (v.received) {
      v.first = time_.begins[at(v.region)];
    }
  }
  // Metrics and states without a place of their own are read after the last call.
  // What Begin and Update send is waited for when they end.
  for (int r = 0; r < static_cast<int>(regions_.size()); ++r) {
    for (const Output& output : regions_[at(r)].graph.outputs()) {
      StoredValue& v = values_[at(value(r, output.value))];
      if (output.kind == Output::Kind::Metric || output.kind == Output::Kind::Next) {
        v.last = time_.end;
      } else if (output.kind == Output::Kind::Send) {
        v.last = std::max(v.last, time_.ends[at(r)]);
      }
    }
  }
}

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

/// A ring is filled by one region. What another one makes of it lies in it only as long as that
/// region runs.
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

/// As deep as all that lies in it needs. The first value is the one that fills it; the receive of
/// a message is posted ahead.
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
  // What leaves is read after states are stored, so not even a view of a view may lie in a state.
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
