#include "tessera/search/restrict.h"

#include <map>
#include <numeric>

#include "tessera/base/index.h"

namespace tessera {

namespace {

using Numbers = std::vector<int>;

std::shared_ptr<const Options> options_of(const Options& options, const Numbers& kept) {
  Options out;
  for (const int option : kept) {
    out.costs.push_back(options.costs[at(option)]);
    if (!options.bytes.empty()) out.bytes.push_back(options.bytes[at(option)]);
  }
  return std::make_shared<const Options>(std::move(out));
}

std::shared_ptr<const CostTable> table_of(const CostTable& table, const Numbers& rows,
                                          const Numbers& columns) {
  CostTable out{static_cast<int>(rows.size()), static_cast<int>(columns.size()), {}};
  for (const int row : rows) {
    for (const int column : columns) out.costs.push_back(table.at(row, column));
  }
  return std::make_shared<const CostTable>(std::move(out));
}

/// The options that stay, per decision.
std::vector<Numbers> kept_of(const DecisionGraph& graph, const Allowed& allowed) {
  std::vector<Numbers> out = allowed;
  for (int i = 0; i < graph.size(); ++i) {
    if (!out[at(i)].empty()) continue;
    out[at(i)].resize(at(graph.decisions[at(i)].options->size()));
    std::iota(out[at(i)].begin(), out[at(i)].end(), 0);
  }
  return out;
}

}  // namespace

DecisionGraph restricted(const DecisionGraph& graph, const Allowed& allowed) {
  // Decisions that share options go on sharing them, so that blocks still fold.
  std::map<std::pair<const void*, Numbers>, std::shared_ptr<const Options>> options;
  std::map<std::tuple<const void*, Numbers, Numbers>, std::shared_ptr<const CostTable>> tables;
  const std::vector<Numbers> kept = kept_of(graph, allowed);
  DecisionGraph out;
  for (int i = 0; i < graph.size(); ++i) {
    const Decision& decision = graph.decisions[at(i)];
    auto& made = options[{decision.options.get(), kept[at(i)]}];
    if (!made) made = options_of(*decision.options, kept[at(i)]);
    out.decisions.push_back({decision.name, decision.block, made});
  }
  for (const Link& link : graph.links) {
    const Numbers &rows = kept[at(link.from)], &columns = kept[at(link.to)];
    auto& made = tables[{link.table.get(), rows, columns}];
    if (!made) made = table_of(*link.table, rows, columns);
    out.links.push_back({link.from, link.to, made});
  }
  return out;
}

Solution solve_restricted(const DecisionGraph& graph, const Allowed& allowed,
                          const SolveLimits& limits) {
  const std::vector<Numbers> kept = kept_of(graph, allowed);
  Solution found = solve(restricted(graph, allowed), limits);
  for (int i = 0; i < graph.size(); ++i) found.picks[at(i)] = kept[at(i)][at(found.picks[at(i)])];
  return found;
}

}  // namespace tessera
