#pragma once
/// Runs the regions of a partitioned graph with the interpreter: what a plan must compute.

#include <map>
#include <string>

#include "tessera/ir/strategy.h"
#include "tessera/ops/interpret.h"
#include "tessera/passes/partition.h"

namespace tessera {

/// Outputs by name: metrics as they are, next values of states as "next <path>".
inline std::map<std::string, HostTensor> interpret_regions(const std::vector<Region>& regions,
                                                           const Bindings& inputs,
                                                           Interpretation how) {
  Bindings bound = inputs;
  std::map<std::string, HostTensor> out;
  const auto run = [&](const Region& region, std::int64_t microbatch) {
    how.at[std::string(kMicrobatchAxis)] = microbatch;
    const std::vector<HostTensor> values = interpret(region.graph, bound, how);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Output& output = region.graph.outputs()[i];
      if (output.kind == Output::Kind::Slot) bound.slots[output.name] = values[i];
      if (output.kind == Output::Kind::Metric) out[output.name] = values[i];
      if (output.kind == Output::Kind::Next) out["next " + output.name] = values[i];
      if (output.kind != Output::Kind::Accumulate) continue;
      const Monoid monoid = reduction_over_time(region.graph.result(output.value));
      HostTensor total = values[i].clone();
      for (std::int64_t e = 0; microbatch > 0 && e < total.numel(); ++e)
        total.set(e, combine(monoid, total.at(e), bound.slots[output.name].at(e)));
      bound.slots[output.name] = total;
    }
  };
  run(regions[0], 0);
  for (std::int64_t m = 0; m < regions[0].graph.mesh().size(kMicrobatchAxis); ++m) {
    run(regions[1], m);
    run(regions[2], m);
  }
  run(regions[3], 0);
  return out;
}

}  // namespace tessera
