#include "train/host_plan.h"

#include <map>
#include <tuple>

#include "tessera/base/hash.h"
#include "tessera/base/index.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/pack.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/rewrite.h"
#include "tessera/plan/lower.h"
#include "tessera/plan/overlap.h"

namespace tessera {

namespace {

class HostGraph {
 public:
  HostGraph(const Graph& placed, const OnHost& which)
      : which_(which), rewrite_(placed), users_(placed) {
    for (const Output& output : placed.outputs()) {
      if (output.kind == Output::Kind::Next) next_of_[output.value].push_back(output.name);
    }
  }

  Graph run() {
    for (NodeId id = 0; id < from().size(); ++id) carry(id);
    Builder& to = rewrite_.to();
    for (State state : from().states()) {
      state.home = at(host_.contains(state.value) ? Memory::Host : Memory::Device, *state.home);
      state.value = rewrite_(state.value).id();
      to.add_state(std::move(state));
    }
    for (const Output& output : from().outputs()) {
      const auto stored = stores_.find(output.name);
      const bool next = output.kind == Output::Kind::Next && stored != stores_.end();
      to.output(output.kind, output.name, next ? stored->second : rewrite_(output.value));
    }
    return to.finish();
  }

 private:
  const Graph& from() const { return rewrite_.from(); }

  static Placement at(Memory memory, const Placement& placement) {
    return {placement.sharding, memory};
  }

  bool chosen(int percent, std::string_view what, std::string_view name) const {
    return static_cast<int>(random_key(which_.seed, text(what, name)) % 100) < percent;
  }

  bool state_on_host(const std::string& path) const {
    return chosen(which_.states, "state ", path);
  }

  void carry(NodeId id) {
    Node node = from().node(id);
    ValueIds inputs;
    const bool there = updates_there(id);
    for (const ValueId v : node.inputs)
      inputs.push_back(there ? rewrite_(v).id() : readable(v, node).id());
    if (node.op == &kState && state_on_host(std::get<std::string>(node.attrs[0]))) {
      host_.emplace(ValueId{id, 0}, rewrite_.to().so_far().size());
    }
    if (there || host_.contains({id, 0})) {
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        const auto next = next_of_.find({id, static_cast<std::int32_t>(i)});
        if (host_.contains({id, 0}) || (next != next_of_.end() && state_on_host(next->second[0])))
          node.results[i].placement = at(Memory::Host, *node.results[i].placement);
      }
    }
    node.like = node.remat_of = -1;
    node.cotangent.reset();
    const std::vector<Value> values = rewrite_.to().copy(std::move(node), std::move(inputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ValueId old{id, static_cast<std::int32_t>(i)};
      rewrite_.map(old, values[i]);
      leave(old, there);
    }
  }

  /// True where a node computes next values of states on the host where they lie.
  bool updates_there(NodeId id) const {
    const Node& node = from().node(id);
    if (node.op->traits.leaf || reshards(*node.op)) return false;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(node.results.size()); ++i) {
      const auto next = next_of_.find({id, i});
      if (next == next_of_.end() || next->second.size() > 1 || !users_(id).empty()) return false;
      if (state_on_host(next->second[0]))
        return chosen(which_.updates_there, "update ", next->second[0]);
    }
    return false;
  }

  /// To the host, where that was chosen.
  void leave(ValueId old, bool there) {
    const Node& node = from().node(old.node);
    if (node.op->traits.leaf) return;
    const auto next = next_of_.find(old);
    if (!there && next != next_of_.end()) {
      for (const std::string& path : next->second) {
        if (state_on_host(path)) stores_[path] = moved(rewrite_(old), Memory::Host, node);
      }
    }
    const bool crosses = node.phase == Phase::Forward && !users_(old.node).empty() &&
                         chosen(which_.activations, "value ", text(old));
    if (!crosses) return;
    host_.emplace(old, moved(rewrite_(old), Memory::Host, node).id().node);
  }

  /// The value on the device, as this node reads it: forward reads what it computed.
  Value readable(ValueId v, const Node& reader) {
    const auto host = host_.find(v);
    const bool state = from().node(v.node).op == &kState;
    if (host == host_.end() || (!state && reader.phase == Phase::Forward)) return rewrite_(v);
    Value& there = back_[{v, reader.phase, reader.stage}];
    if (!there.valid())
      there = moved(Value(rewrite_.to(), {host->second, 0}), Memory::Device, reader);
    return there;
  }

  Value moved(Value value, Memory memory, const Node& like) {
    Node node;
    node.op = &kReshard;
    node.block = like.block;
    node.phase = like.phase;
    node.stage = like.stage;
    node.results = {rewrite_.to().so_far().result(value.id())};
    node.results[0].placement = at(memory, *node.results[0].placement);
    return rewrite_.to().copy(std::move(node), {value.id()})[0];
  }

  OnHost which_;
  Rewrite rewrite_;
  Users users_;
  std::map<ValueId, std::vector<std::string>> next_of_;
  std::map<ValueId, NodeId> host_;       // by old value: where the new graph has it on the host
  std::map<std::string, Value> stores_;  // next values that are copied to the host
  std::map<std::tuple<ValueId, Phase, int>, Value> back_;
};

}  // namespace

Graph to_host(const Graph& placed, const OnHost& which) { return HostGraph(placed, which).run(); }

Plan host_plan(const std::vector<ProgramSource>& sources, const OnHost& which, Device& device,
               const CompileOptions& options) {
  std::map<std::string, Graph> placed;
  CompileOptions seen = options;
  seen.observe = [&](const std::string& program, const std::string& pass,
                     const std::vector<PassGraph>& graphs, double) {
    if (pass == "propagate") placed.emplace(program, to_host(*graphs[0].graph, which));
  };
  Plan plan = compile(sources, device, seen);
  StateSection states(options.guard_bytes);
  plan.programs.clear();
  for (const ProgramSource& source : sources) {
    const auto& [stages, chunks, schedule, pins] = source.strategy.pipeline;
    const Pipeline pipeline(
        make_schedule(schedule, {stages, chunks, source.strategy.mesh.size(kMicrobatchAxis)}));
    Program program = partition(placed.at(source.name), pipeline, plan.stage());
    if (options.optimize.fuse) program = fuse(std::move(program));
    program = pack(std::move(program), [&](const OpCall& call, int operand, std::int64_t uses) {
      return device.wanted_layout(call, operand, uses);
    });
    const Timeline time = options.overlap ? overlap(program) : Timeline(program);
    plan.programs.push_back(
        lower(source.name, program, time, states, device, {options.seed, plan.rank}));
  }
  plan.constants = states.constants;
  plan.state_bytes = states.bytes;
  for (const StatePlan& placed_state : states.states) {
    for (StatePlan& state : plan.states) {
      if (state.state.path == placed_state.state.path) state.place = placed_state.place;
    }
  }
  return plan;
}

}  // namespace tessera
