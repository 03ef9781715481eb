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
  std::int32_t read = -1, written = time_.end;
  for (const int v : buffers_[at(root.buffer)].values) {  // the old value, its views, the next one
    const StoredValue& value = values_[at(v)];
    if (&value != &root && !is_view(value.region, value.id.node)) {
      written = value.first;
      break;
    }
    if (!value.uses.empty()) read = std::max(read, value.last);
  }
  if (read < 0) return std::nullopt;
  // Another micro-batch, or an action that runs later than its place in time says, may read it.
  const bool again = microbatches_ > 1 || !order_.ends_in_order();
  if (again && read < time_.loop_end) read = time_.loop_end;
  if (written == time_.end || read + 1 >= written) return std::nullopt;
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
  // Messages that Begin and Update send are waited for when they end.
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

}  // namespace tessera
