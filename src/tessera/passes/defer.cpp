#include "tessera/passes/defer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

/// The value is at least so many times as large as what it is made of, weights aside.
constexpr std::int64_t kSmall = 4;

bool is_product(const Node& node) { return node.op->arithmetic == Arithmetic::Narrow; }

/// True of a copy to the host of a value that forward keeps for backward.
bool goes_to_host(const Node& node) {
  return node.op == &kCopy && memory_of(node.results[0]) == Memory::Host;
}

bool is_leaf(const Node& node) { return node.op->traits.leaf && node.op != &kReceive; }

class Deferral {
 public:
  Deferral(const Program& program, int forward, int backward, const std::string& slot)
      : program_(program),
        index_(backward),
        from_(program.regions[at(forward)].graph),
        rewrite_(program.regions[at(backward)].graph),
        slot_(slot),
        value_(on_device(from_.output(Output::Kind::Slot, slot))),
        moved_(from_.nodes().size(), false),
        new_(from_),
        twins_(from_.nodes().size(), kUnknown) {
    for (const Output& output : from_.outputs()) {
      if (output.kind == Output::Kind::Slot) slots_.emplace(output.value, output.name);
    }
  }

  std::optional<Deferred> run() {
    mark();
    if (!may_move() || !has_operands()) return std::nullopt;
    for (NodeId id = 0; id < from_.size(); ++id) {
      if (moved_[at(id)] && !goes_to_host(from_.node(id))) move(id);
    }
    for (NodeId id = 0; id < backward().size(); ++id) carry(id);
    for (const Output& output : from_.outputs()) {
      const bool inside = output.kind == Output::Kind::Slot && !read_behind_backward(output.name);
      if (moved_[at(output.value.node)] && !inside)
        rewrite_.to().output(output.kind, output.name, new_[output.value]);
    }
    Deferred out;
    out.value = new_[value_].id();
    out.backward = rewrite_.finish();
    out.forward = forward_without();
    return out;
  }

 private:
  static constexpr NodeId kUnknown = -2, kNone = -1;

  const Graph& backward() const { return rewrite_.from(); }
  bool is_large(ValueId v) const { return from_.type(v).bytes() * 2 >= from_.type(value_).bytes(); }
  bool is_large(NodeId id) const {
    bool out = false;
    for (int i = 0; i < static_cast<int>(from_.node(id).results.size()); ++i)
      out = out || is_large(ValueId{id, i});
    return out;
  }

  ValueId on_device(ValueId v) const {
    return goes_to_host(from_.node(v.node)) ? from_.node(v.node).inputs[0] : v;
  }

  /// Marks the values as large as the value itself, from the last product to it; then everything
  /// that is computed from these.
  void mark() {
    std::vector<NodeId> open = {value_.node};
    first_ = value_.node;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (moved_[at(id)]) continue;
      moved_[at(id)] = true;
      first_ = std::min(first_, id);
      for (const ValueId input : from_.node(id).inputs) {
        const bool on_the_way = !is_product(from_.node(id)) && is_large(input) &&
                                !from_.node(input.node).op->traits.leaf;
        if (on_the_way) open.push_back(input.node);
      }
    }
    for (NodeId id = first_; id < from_.size(); ++id) {
      moved_[at(id)] =
          moved_[at(id)] || std::ranges::any_of(from_.node(id).inputs, [&](ValueId input) -> bool {
            return moved_[at(input.node)];
          });
    }
  }

  bool may_move() const {
    for (NodeId id = first_; id < from_.size(); ++id) {
      const Node& node = from_.node(id);
      if (!moved_[at(id)] || goes_to_host(node)) continue;
      if (node.op->traits.leaf || (is_large(id) ? is_transfer(*node.op) : is_product(node)))
        return false;
    }
    return std::ranges::all_of(from_.outputs(), [&](const Output& output) {
      if (!moved_[at(output.value.node)]) return true;
      const bool kept = goes_to_host(from_.node(output.value.node));
      if (output.kind != Output::Kind::Slot)
        return output.kind != Output::Kind::Next && output.kind != Output::Kind::Send && !kept;
      return !read_before_backward(output.name) && !(kept && read_behind_backward(output.name)) &&
             (!kept || comes_back(output.name));
    });
  }

  /// True where Backward only copies what lies on the host to the device.
  bool comes_back(const std::string& slot) const {
    return std::ranges::all_of(backward().nodes(), [&](const Node& node) {
      return node.op == &kCopy || std::ranges::none_of(node.inputs, [&](ValueId input) {
               return is_slot(backward().node(input.node), slot);
             });
    });
  }

  bool read_before_backward(const std::string& slot) const {
    return std::any_of(program_.regions.begin(), program_.regions.begin() + index_,
                       [&](const Region& region) { return reads_slot(region.graph, slot); });
  }
  bool read_behind_backward(const std::string& slot) const {
    return std::any_of(program_.regions.begin() + index_ + 1, program_.regions.end(),
                       [&](const Region& region) { return reads_slot(region.graph, slot); });
  }

  /// True where Backward has all that moved nodes read, or may get it.
  bool has_operands() {
    for (NodeId id = first_; id < from_.size(); ++id) {
      if (!moved_[at(id)]) continue;
      for (const ValueId input : from_.node(id).inputs) {
        if (moved_[at(input.node)] || is_leaf(from_.node(input.node)) || twin(input.node) >= 0)
          continue;
        if (from_.type(input).bytes() * kSmall > from_.type(value_).bytes()) return false;
        const std::string name = text(slot_, ".", handed_.size());
        if (slots_.emplace(input, name).second) handed_.emplace_back(name, input);
      }
    }
    return true;
  }

  /// The node of Backward that computes the same, or `kNone`.
  NodeId twin(NodeId id) {
    if (twins_[at(id)] != kUnknown) return twins_[at(id)];
    twins_[at(id)] = kNone;
    const Node& node = from_.node(id);
    if (moved_[at(id)] || node.op == &kReceive) return kNone;
    ValueIds inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back({twin(input.node), input.index});
      if (!inputs.back().valid()) return kNone;
    }
    for (NodeId other = 0; other < backward().size() && twins_[at(id)] == kNone; ++other) {
      const Node& n = backward().node(other);
      if (n.op == node.op && n.inputs == inputs && n.attrs == node.attrs &&
          n.results == node.results)
        twins_[at(id)] = other;
    }
    return twins_[at(id)];
  }

  void move(NodeId id) {
    Node node = from_.node(id);
    ValueIds inputs;
    for (const ValueId input : node.inputs) inputs.push_back(operand(input).id());
    const std::vector<Value> values = rewrite_.to().copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i)
      new_[{id, static_cast<std::int32_t>(i)}] = values[i];
  }

  /// In Backward, what a moved node reads.
  Value operand(ValueId v) {
    if (new_[v].valid()) return new_[v];
    const Node& node = from_.node(v.node);
    rewrite_.to().set_mark({node.block, node.phase, node.stage, node.where});
    if (const NodeId other = twin(v.node); other >= 0) {
      carry(other);
      return new_[v] = rewrite_({other, v.index});
    }
    if (const auto slot = slots_.find(v); slot != slots_.end()) {
      const NodeId there = slot_node(slot->second);
      if (there >= 0) carry(there);
      return new_[v] = there >= 0 ? rewrite_({there, 0})
                                  : rewrite_.to().slot(slot->second, from_.result(v));
    }
    new_[v] = rewrite_.to().copy(node, {})[0];
    if (node.op == &kState) {
      State state = *from_.find_state(std::get<std::string>(node.attrs[0]));
      state.value = new_[v].id();
      rewrite_.to().add_state(std::move(state));
    }
    return new_[v];
  }

  /// Carries a node of Backward, after its operands. Values that Forward handed over exist by now.
  void carry(NodeId id) {
    if (rewrite_.has({id, 0})) return;
    const Node& node = backward().node(id);
    const NodeId slot = node.op == &kCopy ? node.inputs[0].node : id;
    const ValueId handed = handed_as(backward().node(slot));
    const bool kept = handed.valid() && goes_to_host(from_.node(handed.node));
    if (kept && slot == id) return;  // its copies are the value itself
    if (handed.valid() && (kept || slot == id))
      return rewrite_.map({id, 0}, new_[on_device(handed)]);
    for (const ValueId input : node.inputs) carry(input.node);
    rewrite_.copy(id);
  }

  /// The moved value that leaves Forward as this slot.
  ValueId handed_as(const Node& slot) const {
    if (slot.op != &kSlot) return {};
    const ValueId v = from_.output(Output::Kind::Slot, std::get<std::string>(slot.attrs[0]));
    return v.valid() && moved_[at(v.node)] ? v : ValueId{};
  }

  static bool is_slot(const Node& node, const std::string& name) {
    return node.op == &kSlot && std::get<std::string>(node.attrs[0]) == name;
  }

  NodeId slot_node(const std::string& name) const {
    for (NodeId id = 0; id < backward().size(); ++id) {
      if (is_slot(backward().node(id), name)) return id;
    }
    return kNone;
  }

  /// Per node of Forward, whether it stays: it has not moved, and not all that read it are gone.
  std::vector<bool> staying() const {
    const Users users(from_);
    std::vector<bool> out(from_.nodes().size(), false);
    for (const Output& output : from_.outputs())
      out[at(output.value.node)] = !moved_[at(output.value.node)];
    for (const auto& [name, v] : handed_) out[at(v.node)] = true;
    for (NodeId id = from_.size() - 1; id >= 0; --id) {
      const std::span<const NodeId> readers = users(id);
      const bool read = readers.empty() || std::ranges::any_of(readers, [&](NodeId reader) -> bool {
                          return out[at(reader)];
                        });
      out[at(id)] = out[at(id)] || (read && !moved_[at(id)]);
    }
    return out;
  }

  Graph forward_without() const {
    const std::vector<bool> kept = staying();
    Builder to(from_.form(), from_.mesh());
    ValueTable<Value> map(from_);
    for (NodeId id = 0; id < from_.size(); ++id) {
      if (!kept[at(id)]) continue;
      ValueIds inputs;
      for (const ValueId input : from_.node(id).inputs) inputs.push_back(map[input].id());
      const std::vector<Value> values = to.copy(from_.node(id), std::move(inputs));
      for (std::size_t i = 0; i < values.size(); ++i)
        map[{id, static_cast<std::int32_t>(i)}] = values[i];
    }
    for (State state : from_.states()) {
      if (!kept[at(state.value.node)]) continue;
      state.value = map[state.value].id();
      to.add_state(std::move(state));
    }
    for (const Output& output : from_.outputs()) {
      if (kept[at(output.value.node)]) to.output(output.kind, output.name, map[output.value]);
    }
    for (const auto& [name, v] : handed_) to.output(Output::Kind::Slot, name, map[v]);
    return to.finish();
  }

  const Program& program_;
  const int index_;  // of Backward
  const Graph& from_;
  Rewrite rewrite_;  // of Backward
  const std::string slot_;
  const ValueId value_;
  NodeId first_ = 0;  // that moves
  std::vector<bool> moved_;
  ValueTable<Value> new_;      // in Backward
  std::vector<NodeId> twins_;  // per node of Forward
  std::map<ValueId, std::string> slots_;
  std::vector<std::pair<std::string, ValueId>> handed_;  // new slots
};

}  // namespace

std::optional<Deferred> defer(const Program& program, int forward, int backward,
                              const std::string& slot) {
  return Deferral(program, forward, backward, slot).run();
}

bool reads_slot(const Graph& region, const std::string& name) {
  return std::ranges::any_of(region.nodes(), [&](const Node& node) {
    return node.op == &kSlot && std::get<std::string>(node.attrs[0]) == name;
  });
}

}  // namespace tessera
