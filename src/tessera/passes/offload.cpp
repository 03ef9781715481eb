#include "tessera/passes/offload.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/before_loop.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

class Offloader {
 public:
  Offloader(const Graph& placed, const Strategy& strategy)
      : offload_(strategy.offload),
        gather_(strategy.gather),
        rewrite_(placed),
        before_loop_(nodes_before_loop(placed)),
        gradients_(placed.nodes().size(), false),
        copied_(copied_parameters(placed)) {
    for (const State& state : placed.states()) homes_[state.path] = home_of(state);
    for (const Output& output : placed.outputs()) {
      if (output.kind == Output::Kind::Next) next_of_[output.value].push_back(output.name);
    }
    for (NodeId id = 0; id < placed.size() && offload_.gradients; ++id) {
      if (placed.node(id).op == &kGradient) find_gradient(id);
    }
    for (NodeId id = 0; id < placed.size() && offload_.activations; ++id) {
      if (placed.node(id).phase == Phase::Backward) find_activations(id);
    }
  }

  Graph run() {
    for (NodeId id = 0; id < from().size(); ++id) carry(id);
    for (State state : from().states()) {
      state.home = Placement{state.home->sharding, homes_.at(state.path)};
      state.value = rewrite_(state.value).id();
      rewrite_.to().add_state(std::move(state));
    }
    for (const Output& output : from().outputs()) {
      const auto store = stores_.find(output.name);
      const bool stored = output.kind == Output::Kind::Next && store != stores_.end();
      const Memory memory =
          output.kind == Output::Kind::Next ? homes_.at(output.name) : Memory::Device;
      const NodeId reader = output.value.node;
      rewrite_.to().output(output.kind, output.name,
                           stored ? store->second : in(memory, output.value, reader));
    }
    return rewrite_.to().finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }
  const Result& now(Value value) { return rewrite_.to().so_far().result(value.id()); }

  Memory home_of(const State& state) const {
    switch (state.role) {
      case Role::Parameter:
      case Role::Copy:
        return on_host(copied_.contains(state.path) ? offload_.moments : offload_.parameters);
      case Role::Reference: return on_host(offload_.parameters);
      case Role::Moment: return on_host(offload_.moments);
      case Role::Counter:
      case Role::Scale:
      case Role::Rate:
      case Role::Cache:
      case Role::Buffer: break;
    }
    return Memory::Device;
  }

  static Memory on_host(bool host) { return host ? Memory::Host : Memory::Device; }

  /// A gradient is finished, and moved to where it is wanted, on the host.
  void find_gradient(NodeId id) {
    for (;; id = from().node(id).inputs[0].node) {
      const Node& node = from().node(id);
      if (node.op != &kGradient && node.op != &kReshard) return;
      gradients_[at(id)] = true;
    }
  }

  /// True of a value that forward computes in each micro-batch and backward reads.
  bool is_activation(ValueId v) const {
    const Node& node = from().node(v.node);
    if (node.phase != Phase::Forward || node.op->traits.leaf) return false;
    if (reshards(*node.op) && from().node(node.inputs[0].node).op == &kState) return false;
    const Sharding& sharding = from().result(v).placement->sharding;
    const bool per_microbatch =
        !from().mesh().has(kMicrobatchAxis) || sharding.dim_of(kMicrobatchAxis) >= 0;
    return per_microbatch && sharding.partial.empty();
  }

  /// It is looked at in another shape, which costs nothing.
  bool is_view(ValueId v) const {
    const Node& node = from().node(v.node);
    return node.op->view != nullptr && node.inputs.size() == 1 && is_activation(node.inputs[0]);
  }

  void find_activations(NodeId reader) {
    for (ValueId input : from().node(reader).inputs) {
      if (!is_activation(input)) continue;
      while (is_view(input)) input = from().node(input.node).inputs[0];
      read_by_[input].insert(from().node(reader).stage);
    }
  }

  void carry(NodeId id) {
    Node node = from().node(id);
    const bool moves = reshards(*node.op);
    const Memory memory = memory_for(id);
    ValueIds inputs;
    for (const ValueId input : node.inputs) {
      if (offload_.activations && node.phase == Phase::Backward && is_activation(input))
        inputs.push_back(back(input, id).id());
      else if (moves && !gradients_[at(id)])
        inputs.push_back(rewrite_(input).id());
      else
        inputs.push_back(in(memory, input, id).id());
    }
    for (Result& result : node.results)
      result.placement = Placement{result.placement->sharding, memory};
    node.like = node.remat_of = -1;
    const std::vector<Value> values = rewrite_.to().copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i)
      arrive({id, static_cast<std::int32_t>(i)}, values[i]);
  }

  /// A next value has a copy of its own, as soon as it is there, which is made where the state
  /// lies; an activation has one on the host for each chunk whose backward reads it.
  void arrive(ValueId old, Value value) {
    rewrite_.map(old, value);
    Node marks = from().node(old.node);
    if (const auto readers = read_by_.find(old); readers != read_by_.end()) {
      for (const int stage : readers->second) {
        marks.stage = stage;
        kept_.emplace(std::pair(old, stage), copy(kReshard, value, Memory::Host, marks));
      }
    }
    const auto next = next_of_.find(old);
    if (next == next_of_.end()) return;
    marks = from().node(old.node);
    marks.phase = Phase::Update;
    for (const std::string& path : next->second) {
      const Memory home = homes_.at(path);
      if (now(value).placement->memory != home)
        stores_.emplace(path, copy(kReshard, value, home, marks));
    }
  }

  /// The activation on the device again, copied once for all of backward of a chunk.
  Value back(ValueId v, NodeId reader) {
    const Node& marks = from().node(reader);
    Value& known = back_[{v, marks.stage}];
    if (known.valid()) return known;
    if (!is_view(v))
      return known = copy(kReshard, kept_.at({v, marks.stage}), Memory::Device, marks);
    Node view = from().node(v.node);
    const Value whole = back(view.inputs[0], reader);
    view.phase = marks.phase;
    view.stage = marks.stage;
    view.like = view.remat_of = -1;
    return known = rewrite_.to().copy(std::move(view), {whole.id()})[0];
  }

  Memory memory_for(NodeId id) {
    const Node& node = from().node(id);
    if (node.op == &kState) return homes_.at(std::get<std::string>(node.attrs[0]));
    if (gradients_[at(id)]) return Memory::Host;
    if (node.op->traits.leaf || node.phase != Phase::Update || reshards(*node.op))
      return Memory::Device;
    const bool there = std::ranges::any_of(node.inputs, [&](ValueId input) {
      return now(rewrite_(input)).placement->memory == Memory::Host;
    });
    return there && copied(id, Memory::Host) <= copied(id, Memory::Device) ? Memory::Host
                                                                           : Memory::Device;
  }

  /// Bytes that must be copied if the node runs there.
  std::int64_t copied(NodeId id, Memory memory) {
    const Node& node = from().node(id);
    std::int64_t out = 0;
    for (const ValueId input : node.inputs) {
      const Value value = rewrite_(input);
      if (now(value).placement->memory != memory && !copies_.contains(key(value, memory, id)))
        out += from().type(input).bytes();
    }
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(node.results.size()); ++r) {
      const auto next = next_of_.find({id, r});
      if (next == next_of_.end()) continue;
      for (const std::string& path : next->second)
        out += homes_.at(path) == memory ? 0 : from().type({id, r}).bytes();
    }
    return out;
  }

  /// A state that forward or backward reads.
  bool is_used(Value value, NodeId reader) {
    return rewrite_.to().node(value).op == &kState && from().node(reader).phase != Phase::Update;
  }

  using Key = std::tuple<ValueId, Memory, UseKey>;
  Key key(Value value, Memory memory, NodeId reader) {
    const GatherScope scope = is_used(value, reader) ? gather_ : GatherScope::Block;
    return {value.id(), memory, use_key(from(), reader, scope, before_loop_[at(reader)])};
  }

  /// The value as it lies in that memory; copied once for all readers of a phase and chunk, or, of
  /// a state, for those that share a use.
  Value in(Memory memory, ValueId v, NodeId reader) {
    const Value value = rewrite_(v);
    if (now(value).placement->memory == memory) return value;
    Value& known = copies_[key(value, memory, reader)];
    if (known.valid()) return known;
    Node marks = from().node(reader);
    const bool step = is_used(value, reader) && gather_ == GatherScope::Step;
    if (step) marks.stage = from().node(v.node).stage;
    return known = copy(is_used(value, reader) && !step ? kUse : kReshard, value, memory, marks);
  }

  /// Block, phase, stage and place in the source are those of `marks`.
  Value copy(const OpDef& op, Value value, Memory memory, const Node& marks) {
    Attrs attrs;
    if (&op == &kUse) attrs = {std::get<std::string>(rewrite_.to().node(value).attrs[0])};
    Node node = marked_like(marks, op, std::move(attrs), {now(value)});
    node.results[0].placement = Placement{node.results[0].placement->sharding, memory};
    return rewrite_.to().copy(std::move(node), {value.id()})[0];
  }

  const OffloadStrategy& offload_;
  GatherScope gather_;
  Rewrite rewrite_;
  std::vector<bool> before_loop_;
  std::vector<bool> gradients_;          // by node: it finishes a gradient on the host
  std::set<std::string> copied_;         // copied_parameters
  std::map<std::string, Memory> homes_;  // of states
  std::map<ValueId, std::vector<std::string>> next_of_;
  std::map<Key, Value> copies_;
  std::map<ValueId, std::set<int>> read_by_;       // activations, by chunks whose backward reads
  std::map<std::pair<ValueId, int>, Value> kept_;  // activations on the host, by these chunks
  std::map<std::pair<ValueId, int>, Value> back_;  // and on the device again
  std::map<std::string, Value> stores_;            // next values that are copied, by state
};

}  // namespace

Graph offload(const Graph& placed, const Strategy& strategy) {
  return Offloader(placed, strategy).run();
}

}  // namespace tessera
