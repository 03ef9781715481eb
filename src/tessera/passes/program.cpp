#include "tessera/passes/program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"

namespace tessera {

int Program::index_of(RegionKind kind, int chunk) const {
  return region_index(regions, kind, chunk);
}

const Graph& Program::graph(RegionKind kind, int chunk) const {
  return regions[at(index_of(kind, chunk))].graph;
}

std::string Program::name_of(const Region& region) const {
  const auto kinds = std::count_if(regions.begin(), regions.end(),
                                   [&](const Region& other) { return other.kind == region.kind; });
  return text(to_text(region.kind), kinds == 1 ? "" : text(region.chunk));
}

bool accumulates(const Result& result) {
  return result.placement->sharding.is_partial(kMicrobatchAxis);
}

Monoid reduction_over_time(const Result& result) {
  for (const Partial& p : result.placement->sharding.partial) {
    if (p.axis == kMicrobatchAxis) return p.monoid;
  }
  check(false, "micro-batches leave nothing unfinished in a value at ", result.placement->sharding);
  return Monoid::Sum;
}

std::map<std::string, std::int64_t> find_rings(const Program& program) {
  const auto& regions = program.regions;
  std::vector<std::vector<std::size_t>> runs(regions.size());  // actions, by region and micro-batch
  for (std::size_t i = 0; i < program.actions.size(); ++i)
    runs[at(program.index_of(program.actions[i].region, program.actions[i].chunk))].push_back(i);
  std::map<std::string, std::set<std::size_t>> users;  // by slot: who fills it, and who reads it
  std::map<std::string, std::size_t> fills;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    if (!in_loop(regions[r].kind)) continue;
    for (const Output& output : regions[r].graph.outputs()) {
      if (output.kind == Output::Kind::Slot) users[output.name].insert(fills[output.name] = r);
    }
    for (const Node& node : regions[r].graph.nodes()) {
      if (node.op != &kSlot) continue;
      const auto found = users.find(std::get<std::string>(node.attrs[0]));
      if (found != users.end()) found->second.insert(r);  // else one for all micro-batches
    }
  }
  const auto depth_of = [&](std::size_t fill, const std::set<std::size_t>& all) {
    const std::size_t count = runs[fill].size();
    std::size_t depth = 1;
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t end = 0;
      for (const std::size_t r : all) end = std::max(end, runs[r][k]);
      while (k + depth < count && runs[fill][k + depth] <= end) ++depth;
    }
    return static_cast<std::int64_t>(depth);
  };
  std::map<std::pair<std::size_t, std::set<std::size_t>>, std::int64_t> known;  // few: by regions
  std::map<std::string, std::int64_t> out;
  for (const auto& [slot, fill] : fills) {
    const auto [found, fresh] = known.try_emplace({fill, users[slot]}, 0);
    if (fresh) found->second = depth_of(fill, users[slot]);
    out[slot] = found->second;
  }
  return out;
}

Actions whole_step(const Actions& stage) {
  Actions out = {{RegionKind::Begin, 0, 0}};
  out.insert(out.end(), stage.begin(), stage.end());
  out.push_back({RegionKind::Update, 0, 0});
  return out;
}

}  // namespace tessera
