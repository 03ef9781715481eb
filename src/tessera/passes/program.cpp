#include "tessera/passes/program.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"

namespace tessera {

int Program::index_of(RegionKind kind, int chunk) const {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].kind == kind && regions[i].chunk == chunk) return static_cast<int>(i);
  }
  throw Broken(text("a program without the region ", to_text(kind), " of chunk ", chunk));
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
  struct Life {
    std::size_t begin = 0, end = 0;  // actions
  };
  std::map<std::string, std::vector<Life>> lives;  // by slot, micro-batch
  std::map<std::pair<RegionKind, int>, std::vector<std::string>> fills, reads;  // by region
  for (const Region& region : program.regions) {
    if (!in_loop(region.kind)) continue;
    for (const Output& output : region.graph.outputs()) {
      if (output.kind == Output::Kind::Slot)
        fills[{region.kind, region.chunk}].push_back(output.name);
    }
    for (const Node& node : region.graph.nodes()) {
      if (node.op == &kSlot)
        reads[{region.kind, region.chunk}].push_back(std::get<std::string>(node.attrs[0]));
    }
  }
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    const Action& action = program.actions[i];
    for (const std::string& slot : fills[{action.region, action.chunk}])
      lives[slot].push_back({i, i});
    for (const std::string& slot : reads[{action.region, action.chunk}]) {
      const auto found = lives.find(slot);  // none: one for all micro-batches
      if (found != lives.end()) found->second[at(action.microbatch)].end = i;
    }
  }
  std::map<std::string, std::int64_t> out;
  for (const auto& [slot, life] : lives) {
    std::size_t depth = 1;
    for (std::size_t k = 0; k < life.size(); ++k) {
      while (k + depth < life.size() && life[k + depth].begin <= life[k].end) ++depth;
    }
    out[slot] = static_cast<std::int64_t>(depth);
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
