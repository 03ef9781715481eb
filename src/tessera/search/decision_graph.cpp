#include "tessera/search/decision_graph.h"

#include "tessera/base/index.h"

namespace tessera {

Cost cost_of(const DecisionGraph& graph, const Picks& picks) {
  Cost out = 0;
  for (std::size_t i = 0; i < picks.size(); ++i)
    out += graph.decisions[i].options->costs[at(picks[i])];
  for (const Link& link : graph.links)
    out += link.table->at(picks[at(link.from)], picks[at(link.to)]);
  return out;
}

double bytes_of(const DecisionGraph& graph, const Picks& picks) {
  double out = 0;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const std::vector<double>& bytes = graph.decisions[i].options->bytes;
    if (!bytes.empty()) out += bytes[at(picks[i])];
  }
  return out;
}

}  // namespace tessera
