#pragma once
/// Runs the regions of a partitioned graph on all ranks of its mesh, in lock-step.

#include <map>
#include <string>
#include <vector>

#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/interpret_ranks.h"
#include "tessera/passes/partition.h"

namespace tessera {

/// One node whose exchange is left out.
struct Deleted {
  RegionKind region = RegionKind::Begin;
  NodeId node = -1;
};

/// Outputs by name, whole: metrics as they are, next values of states as "next <path>".
/// Errors: replicas that differ in a bit, unless something is deleted: then the first rank's count,
/// as they do for who reads a step's results. `inputs` are whole.
inline std::map<std::string, HostTensor> interpret_mesh(const std::vector<Region>& regions,
                                                        const Bindings& inputs, Interpretation how,
                                                        const Deleted& deleted = {}) {
  const Mesh& mesh = regions[0].graph.mesh();
  const auto ranks = static_cast<std::size_t>(mesh.ranks());
  std::vector<Bindings> bound(ranks);
  for (const Region& region : regions) {
    for (const Node& node : region.graph.nodes()) {
      if (node.op != &kBatch && node.op != &kState) continue;
      const std::string& name = std::get<std::string>(node.attrs[0]);
      for (std::size_t r = 0; r < ranks; ++r) {
        const Coordinates at = coordinates_of(mesh, static_cast<std::int64_t>(r));
        const auto& from = node.op == &kBatch ? inputs.batch : inputs.states;
        auto& into = node.op == &kBatch ? bound[r].batch : bound[r].states;
        const Beyond beyond = node.op == &kState ? Beyond::Zeros : Beyond::Poison;
        if (!into.contains(name))
          into[name] = shard_of(from.find(name)->second, node.results[0], mesh, at, beyond);
      }
    }
  }
  const Replicas replicas = deleted.node < 0 ? Replicas::Equal : Replicas::First;
  std::map<std::string, HostTensor> out;
  const auto run = [&](const Region& region, std::int64_t microbatch) {
    how.at[std::string(kMicrobatchAxis)] = microbatch;
    const auto values = interpret_ranks(region.graph, bound, how,
                                        region.kind == deleted.region ? deleted.node : -1);
    for (std::size_t i = 0; i < region.graph.outputs().size(); ++i) {
      const Output& output = region.graph.outputs()[i];
      std::vector<HostTensor> shards;
      for (std::size_t r = 0; r < ranks; ++r) {
        shards.push_back(values[r][i]);
        auto& slots = bound[r].slots;
        if (output.kind == Output::Kind::Accumulate && microbatch > 0) {
          const Monoid monoid = reduction_over_time(region.graph.result(output.value));
          HostTensor total = values[r][i].clone();
          for (std::int64_t e = 0; e < total.numel(); ++e)
            total.set(e, combine(monoid, total.at(e), slots[output.name].at(e)));
          slots[output.name] = total;
        } else if (output.kind == Output::Kind::Slot || output.kind == Output::Kind::Accumulate) {
          slots[output.name] = values[r][i];
        }
      }
      const Result& result = region.graph.result(output.value);
      for (std::size_t r = 0; output.kind == Output::Kind::Next && r < ranks; ++r) {
        const Coordinates at = coordinates_of(mesh, static_cast<std::int64_t>(r));
        check(has_zero_padding(shards[r], result, mesh, at), "state '", output.name,
              "' is stored with something other than zeros in its padding, on rank ", r);
      }
      if (output.kind == Output::Kind::Metric)
        out[output.name] = joined(shards, result, mesh, replicas);
      if (output.kind == Output::Kind::Next)
        out["next " + output.name] = joined(shards, result, mesh, replicas);
    }
  };
  run(regions[0], 0);
  for (std::int64_t m = 0; m < mesh.size(kMicrobatchAxis); ++m) {
    run(regions[1], m);
    run(regions[2], m);
  }
  run(regions[3], 0);
  return out;
}

}  // namespace tessera
