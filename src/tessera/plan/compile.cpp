#include "tessera/plan/compile.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "tessera/base/size.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/advance.h"
#include "tessera/passes/bucket.h"
#include "tessera/passes/dispatch.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/offload.h"
#include "tessera/passes/pack.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/preview.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/recompute.h"
#include "tessera/passes/ring_attention.h"
#include "tessera/passes/simplify.h"
#include "tessera/passes/stage_partition.h"
#include "tessera/passes/strips.h"
#include "tessera/plan/input_ranges.h"
#include "tessera/plan/lower.h"
#include "tessera/plan/observed_passes.h"
#include "tessera/plan/overlap.h"
#include "tessera/plan/pattern_check.h"

namespace tessera {

namespace {

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

/// The strategy or the model asks for it.
bool recomputes(const ProgramSource& source) {
  return !source.strategy.recompute.empty() ||
         std::ranges::any_of(source.graph.nodes(),
                             [](const Node& node) { return node.recompute != Recompute::None; });
}

/// The chunks of all programs: those of the program that computes most, and blocks that only others
/// have. Recomputation does not count: with it stages would have other blocks, and sum norms in
/// another order.
std::vector<ChunkPin> cut_of_all(const std::vector<ProgramSource>& sources) {
  const auto most = std::ranges::max_element(
      sources, {}, [](const ProgramSource& source) { return flops_of(source.graph); });
  const PipelineStrategy& pipeline = most->strategy.pipeline;
  if (pipeline.total() == 1) return {};
  std::vector<const Graph*> programs = {&most->graph};
  for (const ProgramSource& source : sources) {
    if (&source != &*most) programs.push_back(&source.graph);
  }
  return cut_into_chunks(programs, pipeline);
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

  /// All states, with the places of those that this stage has.
  std::vector<StatePlan> with(const std::vector<StatePlan>& here, int stage) const {
    std::unordered_map<std::string_view, const StatePlan*> placed;
    for (const StatePlan& state : here) placed.emplace(state.state.path, &state);
    std::vector<StatePlan> out = all_;
    for (StatePlan& state : out) {
      const auto found = placed.find(state.state.path);
      if (found != placed.end()) state.place = found->second->place;
      check(state.is_on(stage) == (found != placed.end()), "state '", state.state.path,
            "' and stage ", stage, " do not agree on whether it is there");
    }
    return out;
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
    require(!mesh.has(kPipelineAxis), "the mesh ", mesh, " has an axis '", kPipelineAxis,
            "', which is reserved for pipeline stages; rename it");
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

/// Stages that `Pipeline` plays can run: with receives posted ahead and one send under way at a
/// time, which is the least that plans do. Errors: Broken: they would wait for each
/// other.
void require_to_run(const Program& program, const Pipeline& pipeline) {
  if (program.edges.empty()) return;
  std::vector<Edge> edges;
  for (const EdgeBytes& each : program.edges) edges.push_back(each.edge);
  PlayOptions options;
  options.ahead = true;
  options.send_slots = 1;
  Pipeline(pipeline.schedule(), skips_of(edges)).play(options);
}

bool has_stages(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.stage >= 0; });
}

/// The plan of one rank, program by program.
class RankPlan {
 public:
  RankPlan(const Mesh& mesh, int stages, int rank, const std::vector<ChunkPin>& cut, Device& device,
           const CompileOptions& options)
      : device_(device), options_(options), states_(options.guard_bytes, in_base(mesh)) {
    plan_.mesh = mesh;
    plan_.stages = stages;
    plan_.seed = options.seed;
    plan_.tf32 = options.tf32;
    plan_.vendor_kernels = options.optimize.vendor_kernels;
    plan_.rank = rank;
    plan_.cut = cut;
    plan_.guard_bytes = options.guard_bytes;
    require(rank >= 0 && rank < plan_.ranks(), "rank ", rank, " on mesh '", mesh, "'",
            stages == 1 ? "" : text(" and ", stages, " stages"), ", whose ranks are 0 to ",
            plan_.ranks() - 1);
  }

  /// This rank's part of a graph that has placements; the first rank that asks makes `parts`, of
  /// all of them.
  Program part(const std::string& name, const Graph& placed, const Pipeline& pipeline,
               std::optional<StagePartition>& parts) {
    const bool first = !parts;
    Program out = passes(name)("partition", [&] {
      if (first) parts.emplace(placed, pipeline, options_.machine);
      return parts->stage(plan_.stage());
    });
    if (first) require_to_run(out, pipeline);
    return out;
  }

  /// With keys and values that travel.
  Program ringed(const std::string& name, Program program) const {
    return passes(name)("ring_attention",
                        [&] { return ring_attention(std::move(program), options_.rings); });
  }

  /// With few all_reduces of gradients.
  Program joined(const std::string& name, Program program, const BucketStrategy& buckets) const {
    return passes(name)("bucket", [&] { return bucket(std::move(program), buckets); });
  }

  void add(const std::string& name, Program program, const InputRanges& ranges) {
    const Passes pass = passes(name);
    const auto local = options_.keeps_local ? std::make_shared<const Program>(program) : nullptr;
    // XLA gathers all rows.
    if (options_.optimize.dispatch && options_.machine.kernels == KernelSource::Cpu && !local)
      program = pass("dispatch", [&] { return dispatch(std::move(program)); });
    if (options_.optimize.strips)
      program = pass("strips", [&] { return strips(std::move(program), options_.strips); });
    if (options_.optimize.advance)
      program = pass("advance", [&] { return advance(std::move(program)); });
    if (options_.optimize.fuse) program = pass("fuse", [&] { return fuse(std::move(program)); });
    if (options_.optimize.pack)
      program = pass("pack", [&] { return pack(std::move(program), wanted_by(device_)); });
    const Timeline time =
        pass("overlap", [&] { return options_.overlap ? overlap(program) : Timeline(program); });
    plan_.programs.push_back(pass("lower", [&] {
      return lower(
          name, program, time, states_, device_,
          {options_.seed, plan_.rank, options_.optimize.shares_buffers, options_.exact_layout});
    }));
    plan_.programs.back().local = local;
    for (NamedTensor& input : plan_.programs.back().batch) {
      if (const auto its = ranges.find(input.name); its != ranges.end()) input.range = its->second;
    }
  }

  Plan finish(const StateStages& stages) {
    plan_.states = stages.with(states_.states, plan_.stage());
    plan_.constants = std::move(states_.constants);
    plan_.state_bytes = states_.bytes;
    plan_.base_bytes = states_.base_bytes;
    for (const Memory memory : kMemories)
      size_sum(plan_.state_bytes[memory], plan_.work_bytes(memory), "bytes of a pool");
    for (ProgramPlan& program : plan_.programs) {
      for (const StatePlan& state : plan_.states) {
        if (!plan_.has(state) || state.place.memory != Memory::Device) continue;
        const Role role = state.state.role;
        if (role == Role::Copy) continue;  // each program knows when it needs them
        const bool weight = is_of_model(role) || role == Role::Reference;
        std::int64_t& bytes = weight                ? program.memory.parameters
                              : role == Role::Cache ? program.memory.caches
                                                    : program.memory.optimizer;
        bytes += aligned(state.type.bytes());
      }
    }
    return std::move(plan_);
  }

 private:
  /// What no other rank has is in no base.
  std::function<bool(const State&)> in_base(const Mesh& mesh) const {
    if (!options_.base) return {};
    return [this, &mesh](const State& state) {
      return options_.base(state) && std::ranges::any_of(mesh.axes(), [&](const Axis& axis) {
               return axis.size > 1 && state.home->sharding.dim_of(axis.name) < 0;
             });
    };
  }

  Passes passes(const std::string& name) const {
    return Passes(name, options_, plan_.stages == 1 ? -1 : plan_.stage());
  }

  Device& device_;
  const CompileOptions& options_;
  StateSection states_;
  Plan plan_;
};

/// The plans of some ranks.
std::vector<Plan> compile_ranks(std::vector<ProgramSource> sources, Device& device,
                                const CompileOptions& options, const std::vector<int>& ranks) {
  check(options.guard_bytes % kAlignment == 0, "guards of ", options.guard_bytes, " bytes");
  require_patterns_match(sources);
  const Mesh mesh = mesh_of_all(sources);
  const int stages = sources.empty() ? 1 : sources[0].strategy.pipeline.stages;
  const std::vector<ChunkPin> cut = sources.empty() ? std::vector<ChunkPin>{} : cut_of_all(sources);
  for (const ProgramSource& source : sources) {
    if (options.check != nullptr)
      PassCheck::require_small(source.name, source.graph, stages * mesh.ranks());
  }
  StateStages states;
  std::vector<std::unique_ptr<RankPlan>> plans;
  for (const int rank : ranks)
    plans.push_back(std::make_unique<RankPlan>(mesh, stages, rank, cut, device, options));
  for (ProgramSource& source : sources) {
    const Passes pass(source.name, options);
    pass.show("source", {{"", &source.graph}}, 0);
    if (options.check != nullptr) options.check->begin(source.graph, stages, options.seed);
    const bool again = recomputes(source);
    const InputRanges ranges = input_ranges(source.graph);
    Graph graph = std::exchange(source.graph, {});
    // Without a pipeline, marks of stages mean nothing, and no pass meets them.
    if (cut.empty() && has_stages(graph)) graph = place_chunks(graph, {});
    if (options.optimize.simplify) {
      graph = pass("merge_pads", [&] { return merge_pads(graph); });
      graph = pass("simplify", [&] { return simplify(graph); });
    }
    if (!cut.empty()) graph = pass("place_chunks", [&] { return place_chunks(graph, cut); });
    if (has_preview(graph, source.strategy.mesh))
      graph = pass("preview", [&] { return preview(graph, source.strategy.mesh); });
    if (again)
      graph = pass("recompute", [&] { return recompute(graph, source.strategy.recompute); });
    graph = pass("add_uses", [&] { return add_uses(graph, source.strategy.gather); });
    const Pipeline pipeline = pipeline_of(source.strategy);
    graph = pass("propagate", [&] { return propagate(graph, source.strategy, options.machine); });
    if (source.strategy.offload.any())
      graph = pass("offload", [&] { return offload(graph, source.strategy); });
    states.add(graph, pipeline);
    std::optional<StagePartition> parts;
    for (const std::unique_ptr<RankPlan>& plan : plans) {
      Program program = plan->part(source.name, graph, pipeline, parts);
      if (source.strategy.keys == KeyExchange::Ring)
        program = plan->ringed(source.name, std::move(program));
      if (source.strategy.buckets.any())
        program = plan->joined(source.name, std::move(program), source.strategy.buckets);
      if (plan == plans.back()) parts.reset(), graph = {};  // large, and read no more
      plan->add(source.name, std::move(program), ranges);
    }
  }
  std::vector<Plan> out;
  for (const std::unique_ptr<RankPlan>& plan : plans) out.push_back(plan->finish(states));
  return out;
}

}  // namespace

Plan compile(std::vector<ProgramSource> sources, Device& device, const CompileOptions& options) {
  return std::move(compile_ranks(std::move(sources), device, options, {options.rank})[0]);
}

std::vector<Plan> compile_stages(std::vector<ProgramSource> sources, Device& device,
                                 const CompileOptions& options) {
  const int ranks = static_cast<int>(mesh_of_all(sources).ranks());
  std::vector<int> first;
  for (int s = 0; s < (sources.empty() ? 1 : sources[0].strategy.pipeline.stages); ++s)
    first.push_back(s * ranks);
  return compile_ranks(std::move(sources), device, options, first);
}

}  // namespace tessera
