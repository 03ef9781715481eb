#include "tessera/search/decision_graph.h"

#include <cmath>

#include "tessera/base/index.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

std::string json_numbers(const std::vector<double>& numbers) {
  std::vector<std::string> out;
  for (const double n : numbers)
    out.push_back(std::isinf(n) ? "null" : std::to_string(static_cast<long long>(n)));
  return text("[", join(out, ","), "]");
}

}  // namespace

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

std::string to_json(const DecisionGraph& graph) {
  std::vector<std::string> decisions, links;
  for (const Decision& decision : graph.decisions) {
    decisions.push_back(text("{\"name\":\"", decision.name,
                             "\",\"costs\":", json_numbers(decision.options->costs),
                             ",\"bytes\":", json_numbers(decision.options->bytes), "}"));
  }
  for (const Link& link : graph.links) {
    links.push_back(text("{\"from\":", link.from, ",\"to\":", link.to,
                         ",\"costs\":", json_numbers(link.table->costs), "}"));
  }
  return text("{\"decisions\":[", join(decisions, ",\n"), "],\n\"links\":[", join(links, ",\n"),
              "]}\n");
}

}  // namespace tessera
