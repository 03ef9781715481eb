#include "tessera/passes/program.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
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

Actions whole_step(const Actions& stage) {
  Actions out = {{RegionKind::Begin, 0, 0}};
  out.insert(out.end(), stage.begin(), stage.end());
  out.push_back({RegionKind::Update, 0, 0});
  return out;
}

}  // namespace tessera
