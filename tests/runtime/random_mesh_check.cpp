#include "runtime/random_mesh_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "runtime/random_graph.h"
#include "tessera/ir/print.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/axis_placements.h"
#include "tessera/passes/decide.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"

namespace tessera::fuzz {

namespace {

using Met = std::set<std::string>;

std::string_view name_of(FactorKind kind) {
  constexpr std::string_view kNames[] = {"pass", "max", "min", "one", "stat", "whole"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// True where some dim is cut into shards that are not all full.
bool uneven(const Result& placed, const Mesh& mesh) {
  const Shape local = local_shape(placed.type.shape, placed.placement->sharding, mesh);
  for (int d = 0; d < local.ndim(); ++d) {
    std::int64_t stored = local[d];
    for (const std::string& axis : placed.placement->sharding.dims[static_cast<std::size_t>(d)])
      stored *= mesh.size(axis);
    if (stored != placed.type.shape[d]) return true;
  }
  return false;
}

/// Nodes whose rule has a factor of that kind.
int count(const Graph& graph, FactorKind kind) {
  int out = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op->traits.leaf || reshards(*graph.node(id).op)) continue;
    const Factors rule = graph.factors(id);
    out += std::any_of(rule.list.begin(), rule.list.end(),
                       [&](const Factor& f) { return f.kind == kind && f.size > 1; });
  }
  return out;
}

/// Which factors the axes shard.
void meet_factors(const Graph& placed, NodeId id, const Axes& axes, Met& met) {
  const Node& node = placed.node(id);
  const Factors rule = placed.factors(id);
  std::set<int> sharded;
  const auto look = [&](const Factors::Dims& dims, const Result& result) {
    const AxisPlacements stands = axes.read(result.placement->sharding);
    for (const Choice f : factors_on_axes(rule, dims, stands, axes)) {
      if (f >= 0) sharded.insert(f);
    }
    for (const std::vector<int>& fs : dims) {
      if (fs.size() > 1 && sharded.contains(fs[0])) met.insert("compound dim cut");
    }
  };
  for (std::size_t i = 0; i < rule.ins.size(); ++i)
    look(rule.ins[i], placed.result(node.inputs[i]));
  for (std::size_t r = 0; r < rule.outs.size(); ++r) look(rule.outs[r], node.results[r]);
  for (const int f : sharded) {
    const std::string kind(name_of(rule.list[static_cast<std::size_t>(f)].kind));
    met.insert(kind + " sharded");
    for (int r = 0; r < static_cast<int>(rule.outs.size()); ++r) {
      if (rule.reduces(f, r)) met.insert(kind + " reduced");
    }
  }
  for (const Factor& f : rule.list) {
    if (!sharded.empty() && f.kind == FactorKind::Whole)
      met.insert(text(name_of(f.kind), " beside a sharded factor"));
  }
}

Met meet(const Graph& graph, const Graph& placed, const Program& program,
         const Strategy& strategy) {
  Met met;
  const Axes axes(strategy);
  for (NodeId id = 0; id < placed.size(); ++id) {
    for (const Result& result : placed.node(id).results) {
      if (uneven(result, placed.mesh())) met.insert("uneven shards");
    }
    const Node& node = placed.node(id);
    if (!node.op->traits.leaf && !reshards(*node.op)) meet_factors(placed, id, axes, met);
  }
  if (count(placed, FactorKind::Stat) < count(graph, FactorKind::Stat)) met.insert("stat sharded");
  for (const Region& region : program.regions) {
    for (const Node& node : region.graph.nodes()) {
      if (!node.op->traits.inserted) continue;
      met.insert(std::string(node.op->name));
    }
  }
  if (placed.mesh().has(kMicrobatchAxis)) met.insert("micro-batches");
  return met;
}

/// The reason of a refusal, in a few words; empty where the error is no refusal, or one that this
/// triple does not deserve.
std::string reason(const Error& error, const RandomStrategy& random) {
  if (error.fault() != Fault::Usage) return {};
  const bool time = random.strategy.mesh.has(kMicrobatchAxis);
  const struct {
    std::string_view words;
    bool deserved;
  } kKnown[] = {{"cannot be split by axis", true},
                {"micro-batches do not divide", time},
                {"cannot be gathered or reduced inside the loop", time},
                {"mixes rows of the batch", time && random.mixes_rows},
                {"cannot be cut into micro-batches: its rule", time},
                {"needs a sum over mb", time && random.mixes_rows},
                {"it holds rows of the batch", time && random.mixes_rows}};
  for (const auto& known : kKnown) {
    if (std::string_view(error.what()).find(known.words) != std::string_view::npos)
      return known.deserved ? std::string(known.words) : "";
  }
  return {};
}

std::string mesh_differs(const HostTensor& one, const HostTensor& mesh, MeshTally& tally) {
  double largest = 1;
  for (std::int64_t i = 0; i < one.numel(); ++i) {
    if (std::isfinite(one.at(i))) largest = std::max(largest, std::abs(one.at(i)));
  }
  for (std::int64_t i = 0; i < one.numel(); ++i) {
    const double a = one.at(i), b = mesh.at(i);
    ++tally.compared;
    if (std::isfinite(a) ? !(std::abs(a - b) <= 1e-9 * largest)
                         : !(std::isnan(a) ? std::isnan(b) : a == b))
      return text("element ", i, " of ", mesh.type(), " is ", b, ", not ", a);
  }
  return {};
}

std::string spread_wrong(const RandomStrategy& random, std::uint64_t seed, MeshTally& tally) {
  const Graph& graph = random.graph;
  const Strategy& strategy = random.strategy;
  try {
    const Graph placed = propagate(add_uses(graph), strategy);
    const Program program = partition(placed);
    Bindings inputs = random_states(graph, seed);
    random_batch(graph, seed, 0, inputs);
    Interpretation how;
    how.f64 = true;
    const std::vector<HostTensor> one = interpret(graph, inputs, how);
    const std::map<std::string, HostTensor> mesh = interpret_program(program, inputs, how);
    for (std::size_t i = 0; i < one.size(); ++i) {
      const Output& output = graph.outputs()[i];
      const std::string name = (output.kind == Output::Kind::Next ? "next " : "") + output.name;
      const auto found = mesh.find(name);
      if (found == mesh.end()) return text(name, " is no output of any region");
      const std::string what = mesh_differs(one[i], found->second, tally);
      if (!what.empty()) return text(name, ": ", what);
    }
    ++tally.triples;
    for (const std::string& one_met : meet(graph, placed, program, strategy)) ++tally.met[one_met];
    return {};
  } catch (const Error& error) {
    const std::string why = reason(error, random);
    if (why.empty()) return error.what();
    ++tally.refused[why];
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// One part of the strategy less, by number; nothing where there are fewer parts.
std::optional<RandomStrategy> less(RandomStrategy from, std::size_t part) {
  Strategy& s = from.strategy;
  if (part < s.pins.size()) {
    s.pins.erase(s.pins.begin() + static_cast<std::ptrdiff_t>(part));
    return from;
  }
  part -= s.pins.size();
  for (auto* names : {&s.shard_moments, &s.shard_gradients, &s.shard_parameters, &s.batch[0],
                      &s.batch[1], &s.batch[2], &s.batch[3]}) {
    if (part < names->size()) {
      names->erase(names->begin() + static_cast<std::ptrdiff_t>(part));
      return from;
    }
    part -= names->size();
  }
  const std::vector<Axis>& axes = s.mesh.axes();
  if (part >= axes.size()) return std::nullopt;
  std::vector<Axis> fewer = axes;
  fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(part));
  s.mesh = Mesh(fewer);
  return from;
}

}  // namespace

std::string mesh_wrong(std::uint64_t seed, int ops, MeshTally& tally) {
  return spread_wrong(random_strategy(seed, random_graph(seed, ops)), seed, tally);
}

std::string smallest_mesh_failure(std::uint64_t seed, int ops) {
  MeshTally tally;
  for (int fewer = 0; fewer <= ops; ++fewer) {
    RandomStrategy random = random_strategy(seed, random_graph(seed, fewer));
    std::string what = spread_wrong(random, seed, tally);
    if (what.empty()) continue;
    for (std::size_t part = 0;;) {
      std::optional<RandomStrategy> simpler = less(random, part);
      if (!simpler) break;
      const std::string still = spread_wrong(*simpler, seed, tally);
      if (still.empty()) {
        ++part;
      } else {
        random = std::move(*simpler), what = still;
      }
    }
    return text("seed ", seed, ", ", fewer, " ops: ", what, "\n", describe(random.strategy), "\n",
                to_text(random.graph));
  }
  return text("seed ", seed, " fails with ", ops, " ops only at times");
}

}  // namespace tessera::fuzz
