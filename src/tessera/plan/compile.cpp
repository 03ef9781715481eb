#include "tessera/plan/compile.h"

#include <chrono>

#include "tessera/base/size.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/pack.h"
#include "tessera/passes/partition.h"
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

/// States lie on ranks: all programs that share them have the same.
Mesh mesh_of_all(const std::vector<ProgramSource>& sources) {
  Mesh out;
  for (const ProgramSource& source : sources) {
    const Mesh mesh = mesh_of_ranks(source.strategy.mesh);
    if (&source == &sources[0]) out = mesh;
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
  plan.guard_bytes = options.guard_bytes;
  for (ProgramSource& source : sources) {
    const Passes pass(source.name, options);
    const std::int64_t ranks = mesh_of_ranks(source.strategy.mesh).ranks();
    require(options.rank >= 0 && options.rank < ranks, "rank ", options.rank, " of program ",
            source.name, " on mesh '", source.strategy.mesh, "', whose ranks are 0 to ", ranks - 1);
    require(source.strategy.pipeline.total() == 1, "program '", source.name,
            "' is to run as a pipeline of ", source.strategy.pipeline.total(),
            " parts, but plans have one stage so far; leave Strategy::pipeline as it is");
    pass.show("source", {{"", &source.graph}}, 0);
    Graph graph = pass("merge_pads", [&] { return merge_pads(source.graph); });
    source.graph = {};
    graph = pass("simplify", [&] { return simplify(graph); });
    graph = pass("propagate", [&] { return propagate(graph, source.strategy, options.machine); });
    Program program =
        pass("partition", [&] { return partition(graph, options.machine, options.moves); });
    graph = {};
    if (options.fuse) program = pass("fuse", [&] { return fuse(std::move(program)); });
    program = pass("pack", [&] { return pack(std::move(program), wanted_by(device)); });
    const Timeline time =
        pass("overlap", [&] { return options.overlap ? overlap(program) : Timeline(program); });
    plan.programs.push_back(pass("lower", [&] {
      return lower(source.name, program, time, states, device, options.seed, options.rank);
    }));
  }
  plan.rank = options.rank;
  plan.states = std::move(states.states);
  plan.constants = std::move(states.constants);
  plan.state_bytes = states.bytes;
  size_sum(plan.state_bytes, plan.work_bytes(), "bytes of the arena");
  for (ProgramPlan& program : plan.programs) {
    for (const StatePlan& state : plan.states) {
      std::int64_t& bytes = state.state.role == Role::Parameter ? program.memory.parameters
                                                                : program.memory.optimizer;
      bytes += aligned(state.type.bytes());
    }
  }
  return plan;
}

}  // namespace tessera
