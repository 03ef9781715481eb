#include "search/graph_json.h"

#include <cmath>

#include "tessera/base/text.h"

namespace tessera::test {

namespace {

std::string json_numbers(const std::vector<double>& numbers) {
  std::vector<std::string> out;
  for (const double n : numbers)
    out.push_back(std::isinf(n) ? "null" : std::to_string(static_cast<long long>(n)));
  return text("[", join(out, ","), "]");
}

}  // namespace

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

}  // namespace tessera::test
