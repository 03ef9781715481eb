#include "tessera/passes/offload.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

class Offloader {
 public:
  Offloader(const Graph& placed, const OffloadStrategy& offload)
      : offload_(offload), rewrite_(placed), gradients_(placed.nodes().size(), false) {
    for (const State& state : placed.states()) homes_[state.path] = home_of(state);
    for (const Output& output : placed.outputs()) {
      if (output.kind == Output::Kind::Next) next_of_[output.value].push_back(output.name);
    }
    for (NodeId id = 0; id < placed.size() && offload.gradients; ++id) {
      if (placed.node(id).op == &kGradient) find_gradient(id);
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
      const Node& reader = from().node(output.value.node);
      rewrite_.to().output(output.kind, output.name,
                           stored ? store->second : in(memory, output.value, reader));
    }
    return rewrite_.to().finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }
  const Result& now(Value value) { return rewrite_.to().so_far().result(value.id()); }

  Memory home_of(const State& state) const {
    const bool host = state.role == Role::Parameter ? offload_.parameters
                      : state.role == Role::Moment  ? offload_.moments
                                                    : false;
    return host ? Memory::Host : Memory::Device;
  }

  /// A gradient is finished, and moved to where it is wanted, on the host.
  void find_gradient(NodeId id) {
    for (;; id = from().node(id).inputs[0].node) {
      const Node& node = from().node(id);
      if (node.op != &kGradient && node.op != &kReshard) return;
      gradients_[at(id)] = true;
    }
  }

  void carry(NodeId id) {
    Node node = from().node(id);
    const bool moves = reshards(*node.op);
    const Memory memory = memory_for(id);
    ValueIds inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back(moves && !gradients_[at(id)] ? rewrite_(input).id()
                                                    : in(memory, input, node).id());
    for (Result& result : node.results)
      result.placement = Placement{result.placement->sharding, memory};
    node.like = node.remat_of = -1;
    const std::vector<Value> values = rewrite_.to().copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i)
      arrive({id, static_cast<std::int32_t>(i)}, values[i]);
  }

  /// A next value has a copy of its own, as soon as it is there, which is made where the state
  /// lies.
  void arrive(ValueId old, Value value) {
    rewrite_.map(old, value);
    const auto next = next_of_.find(old);
    if (next == next_of_.end()) return;
    Node writer = from().node(old.node);
    writer.phase = Phase::Update;
    for (const std::string& path : next->second) {
      const Memory home = homes_.at(path);
      if (now(value).placement->memory != home) stores_.emplace(path, copy(value, home, writer));
    }
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
      if (now(value).placement->memory != memory && !copies_.contains(key(value, memory, node)))
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

  using Key = std::tuple<ValueId, Memory, Phase, std::int32_t>;
  static Key key(Value value, Memory memory, const Node& reader) {
    return {value.id(), memory, reader.phase, reader.stage};
  }

  /// The value as it lies in that memory; copied once for all readers of a phase and chunk.
  Value in(Memory memory, ValueId v, const Node& reader) {
    const Value value = rewrite_(v);
    if (now(value).placement->memory == memory) return value;
    Value& known = copies_[key(value, memory, reader)];
    if (!known.valid()) known = copy(value, memory, reader);
    return known;
  }

  Value copy(Value value, Memory memory, const Node& reader) {
    const Node& source = rewrite_.to().node(value);
    Node node;
    const bool use = source.op == &kState && reader.phase != Phase::Update;
    node.op = use ? &kUse : &kReshard;
    if (use) node.attrs = {std::get<std::string>(source.attrs[0])};
    node.block = reader.block;
    node.phase = reader.phase;
    node.stage = reader.stage;
    node.where = reader.where;
    node.results = {now(value)};
    node.results[0].placement = Placement{node.results[0].placement->sharding, memory};
    return rewrite_.to().copy(std::move(node), {value.id()})[0];
  }

  const OffloadStrategy& offload_;
  Rewrite rewrite_;
  std::vector<bool> gradients_;          // by node: it finishes a gradient on the host
  std::map<std::string, Memory> homes_;  // of states
  std::map<ValueId, std::vector<std::string>> next_of_;
  std::map<Key, Value> copies_;
  std::map<std::string, Value> stores_;  // next values that are copied, by state
};

}  // namespace

Graph offload(const Graph& placed, const OffloadStrategy& offload) {
  return Offloader(placed, offload).run();
}

}  // namespace tessera
