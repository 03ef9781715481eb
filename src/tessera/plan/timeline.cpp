#include "tessera/plan/timeline.h"

#include <algorithm>

namespace tessera {

Timeline::Timeline(const Program& program) {
  std::int32_t now = 0;
  bool looped = false;
  for (const Region& region : program.regions) {
    begins.push_back(now);
    auto& times = busy.emplace_back();
    for (NodeId id = 0; id < region.graph.size(); ++id, now += 2)
      times.push_back({now + 1, now + 1});
    ends.push_back(now);
    if (in_loop(region.kind)) {
      if (!looped) loop_begin = begins.back();
      looped = true;
      loop_end = now + 1;
    }
    now += 2;
  }
  stores = now;
  end = now + static_cast<std::int32_t>(program.regions.back().graph.outputs().size());
}

int Timeline::region_at(std::int32_t time) const {
  const auto behind = std::upper_bound(begins.begin(), begins.end(), time);
  return static_cast<int>(behind - begins.begin()) - 1;
}

}  // namespace tessera
