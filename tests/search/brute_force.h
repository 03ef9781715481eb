#pragma once
/// All picks of a graph of decisions, one after another.

#include "tessera/base/index.h"
#include "tessera/search/decision_graph.h"

namespace tessera::test {

struct BruteForce {
  Cost cost = kNever;
  long long tried = 0;
};

/// The cost of the cheapest picks within `bytes`. Nothing costs less than nothing, so picks whose
/// first decisions cost as much as the best ones are not gone on with.
inline BruteForce brute_force(const DecisionGraph& graph, double bytes = kNever) {
  std::vector<std::vector<const Link*>> before(at(graph.size()));
  for (const Link& link : graph.links) before[at(link.to)].push_back(&link);
  BruteForce out;
  Picks picks(at(graph.size()), 0);
  const auto go = [&](const auto& self, int i, Cost cost, double kept) -> void {
    if (i == graph.size()) {
      out.cost = cost;
      return;
    }
    const Options& options = *graph.decisions[at(i)].options;
    for (int option = 0; option < options.size(); ++option) {
      Cost sum = cost + options.costs[at(option)];
      for (const Link* link : before[at(i)]) sum += link->table->at(picks[at(link->from)], option);
      const double keeps = kept + (options.bytes.empty() ? 0 : options.bytes[at(option)]);
      ++out.tried;
      if (sum >= out.cost || keeps > bytes) continue;
      picks[at(i)] = option;
      self(self, i + 1, sum, keeps);
    }
  };
  go(go, 0, 0, 0);
  return out;
}

}  // namespace tessera::test
