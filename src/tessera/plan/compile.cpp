#include "tessera/plan/compile.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_map>

#include "tessera/base/size.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/pack.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/lower.h"
#include "tessera/plan/overlap.h"

namespace tessera {

namespace {

/// Runs one pass: times it, shows what it leaves, and says where an error came from.
class Passes {
 public:
  Passes(const std::string& program, const CompileOptions& options)
      : program_(program), options_(options) {}

  template <typename Pass>
  auto operator()(const char* name, const Pass& pass) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    try {
      auto result = pass();
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      show(name, graphs_of(result), seconds);
      return result;
    } catch (const Error& error) {
      throw error.with(text("in pass ", name, " of program ", program_));
    }
  }

  /// Verifies the graphs that a pass left and hands them to the observer.
  void show(const char* name, const std::vector<PassGraph>& graphs, double seconds) const {
    for (const PassGraph& left : graphs) verify(*left.graph);
    if (options_.observe) options_.observe(program_, name, graphs, seconds);
  }

 private:
  static std::vector<PassGraph> graphs_of(const Graph& graph) { return {{"", &graph}}; }
  static std::vector<PassGraph> graphs_of(const Timeline&) { return {}; }
  static std::vector<PassGraph> graphs_of(const ProgramPlan&) { return {}; }
  static std::vector<PassGraph> graphs_of(const Program& program) {
    std::vector<PassGraph> out;
    for (const Region& region : program.regions)
      out.push_back({program.name_of(region), &region.graph});
    return out;
  }

  const std::string& program_;
  const CompileOptions& options_;
};

Mesh mesh_of_ranks(const Mesh& mesh) {
  std::vector<Axis> axes = mesh.axes();
  std::erase_if(axes, [](const Axis& axis) { return axis.level == Level::Time; });
  return Mesh(std::move(axes));
}

double flops_of(const Graph& graph) {
  double out = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op->flops != nullptr) out += node.op->flops(graph.call(id));
  }
  return out;
}

/// The chunks of all programs, from the one that computes most.
std::vector<ChunkPin> cut_of_all(const std::vector<ProgramSource>& sources) {
  const ProgramSource& most = *std::ranges::max_element(
      sources, {}, [](const ProgramSource& source) { return flops_of(source.graph); });
  const PipelineStrategy& pipeline = most.strategy.pipeline;
  return pipeline.total() == 1 ? std::vector<ChunkPin>{} : cut_into_chunks(most.graph, pipeline);
}

Pipeline pipeline_of(const Strategy& strategy) {
  const auto& [stages, chunks, schedule, pins] = strategy.pipeline;
  return Pipeline(make_schedule(schedule, {stages, chunks, strategy.mesh.size(kMicrobatchAxis)}));
}

/// Which stages have which states, in the order of the programs.
class StateStages {
 public:
  void add(const Graph& placed, const Pipeline& pipeline) {
    const int stages = static_cast<int>(pipeline.schedule().stages.size());
    for (const State& state : placed.states()) {
      if (!known_.insert(state.path).second) continue;
      const Result& whole = placed.result(state.value);
      const int chunk = pipeline.chunks() == 1 ? 0 : placed.node(state.value.node).stage;
      std::vector<int> on = {chunk < 0 ? 0 : pipeline.stage_of(chunk)};
      for (int s = 1; chunk < 0 && s < stages; ++s) on.push_back(s);
      const Shape shard = local_shape(whole.type.shape, state.home->sharding, placed.mesh());
      all_.push_back({state, {whole.type.dtype, shard, {}}, {}, whole.type.shape, std::move(on)});
    }
  }

  /// With the places of those that this stage has.
  std::vector<StatePlan> with(const std::vector<StatePlan>& here) {
    std::unordered_map<std::string_view, const StatePlan*> placed;
    for (const StatePlan& state : here) placed.emplace(state.state.path, &state);
    for (StatePlan& state : all_) {
      if (const auto found = placed.find(state.state.path); found != placed.end())
        state.place = found->second->place;
    }
    return std::move(all_);
  }

 private:
  std::set<std::string> known_;
  std::vector<StatePlan> all_;
};

/// States lie on ranks: all programs that share them have the same.
Mesh mesh_of_all(const std::vector<ProgramSource>& sources) {
  Mesh out;
  for (const ProgramSource& source : sources) {
    const Mesh mesh = mesh_of_ranks(source.strategy.mesh);
    if (&source == &sources[0]) out = mesh;
    require(source.strategy.pipeline == sources[0].strategy.pipeline, "program '", source.name,
            "' is compiled for another pipeline than program '", sources[0].name,
            "'; programs of one plan share their states, so give them one");
    require(mesh == out, "program '", source.name, "' is compiled for the mesh ", mesh,
            ", program '", sources[0].name, "' for ", out,
            "; programs of one plan share their states, so give them one mesh (axes of time may ",
            "differ)");
  }
  return out;
}

WantedLayout wanted_by(const Device& device) {
  return [&device](const OpCall& call, int operand, std::int64_t uses) {
    return device.wanted_layout(call, operand, uses);
  };
}

}  // namespace

Plan compile(std::vector<ProgramSource> sources, Device& device, const CompileOptions& options) {
  check(options.guard_bytes % kAlignment == 0, "guards of ", options.guard_bytes, " bytes");
  StateSection states(options.guard_bytes);
  Plan plan;
  plan.mesh = mesh_of_all(sources);
  plan.stages = sources.empty() ? 1 : sources[0].strategy.pipeline.stages;
  plan.rank = options.rank;
  plan.guard_bytes = options.guard_bytes;
  require(options.rank >= 0 && options.rank < plan.ranks(), "rank ", options.rank, " on mesh '",
          plan.mesh, "'", plan.stages == 1 ? "" : text(" and ", plan.stages, " stages"),
          ", whose ranks are 0 to ", plan.ranks() - 1);
  const std::vector<ChunkPin> chunks =
      sources.empty() ? std::vector<ChunkPin>{} : cut_of_all(sources);
  StateStages stages;
  for (ProgramSource& source : sources) {
    const Passes pass(source.name, options);
    pass.show("source", {{"", &source.graph}}, 0);
    Graph graph = pass("merge_pads", [&] { return merge_pads(source.graph); });
    source.graph = {};
    graph = pass("simplify", [&] { return simplify(graph); });
    if (!chunks.empty()) graph = pass("place_chunks", [&] { return place_chunks(graph, chunks); });
    const Pipeline pipeline = pipeline_of(source.strategy);
    graph = pass("propagate", [&] { return propagate(graph, source.strategy, options.machine); });
    Program program = pass("partition", [&] {
      return partition(graph, pipeline, plan.stage(), options.machine, options.moves);
    });
    stages.add(graph, pipeline);
    graph = {};
    if (options.fuse) program = pass("fuse", [&] { return fuse(std::move(program)); });
    program = pass("pack", [&] { return pack(std::move(program), wanted_by(device)); });
    const Timeline time =
        pass("overlap", [&] { return options.overlap ? overlap(program) : Timeline(program); });
    plan.programs.push_back(pass("lower", [&] {
      return lower(source.name, program, time, states, device, options.seed, options.rank);
    }));
  }
  plan.states = stages.with(states.states);
  plan.constants = std::move(states.constants);
  plan.state_bytes = states.bytes;
  size_sum(plan.state_bytes, plan.work_bytes(), "bytes of the arena");
  for (ProgramPlan& program : plan.programs) {
    for (const StatePlan& state : plan.states) {
      if (!plan.has(state)) continue;
      std::int64_t& bytes = state.state.role == Role::Parameter ? program.memory.parameters
                                                                : program.memory.optimizer;
      bytes += aligned(state.type.bytes());
    }
  }
  return plan;
}

}  // namespace tessera
