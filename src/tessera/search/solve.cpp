#include "tessera/search/solve.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/search/dominated.h"
#include "tessera/search/repeats.h"

namespace tessera {

namespace {

/// The graph with `price` added for each byte.
std::vector<CostFunction> functions_of(const DecisionGraph& graph, double price) {
  std::vector<CostFunction> out;
  for (int i = 0; i < graph.size(); ++i) {
    const Options& options = *graph.decisions[at(i)].options;
    std::shared_ptr<const std::vector<Cost>> costs(graph.decisions[at(i)].options, &options.costs);
    if (price > 0 && !options.bytes.empty()) {
      std::vector<Cost> priced = options.costs;
      for (std::size_t k = 0; k < priced.size(); ++k)
        priced[k] += std::round(price * options.bytes[k]);
      costs = std::make_shared<const std::vector<Cost>>(std::move(priced));
    }
    out.push_back({{i}, std::move(costs)});
  }
  for (const Link& link : graph.links) {
    check(link.from < link.to, "a link from decision ", link.from, " to ", link.to);
    out.push_back({{link.from, link.to}, {link.table, &link.table->costs}});
  }
  return out;
}

/// Solves without a limit of bytes: bytes have a price.
Solution solve_priced(const DecisionGraph& graph, const SolveLimits& limits, double price,
                      const std::vector<Repeat>& repeats) {
  Solution out;
  std::vector<int> sizes;
  for (const Decision& decision : graph.decisions) sizes.push_back(decision.options->size());
  std::vector<CostFunction> functions = functions_of(graph, price);
  std::vector<FoldedRun> runs;
  bool exact = true;
  const auto note = [&](const Elimination& done) {
    exact = exact && done.exact();
    out.width = std::max(out.width, done.width());
    out.largest_table = std::max(out.largest_table, done.largest_table());
  };
  for (const Repeat& repeat : repeats) {
    FoldedRun run(repeat, sizes, functions, limits.table);
    if (!run.folds()) continue;
    functions.push_back(run.function());
    out.folded += static_cast<int>(repeat.blocks.size() * repeat.blocks[0].size());
    note(run.block());
    runs.push_back(std::move(run));
  }
  const Elimination all(sizes, std::move(functions), {}, limits.table);
  note(all);
  out.picks.assign(sizes.size(), 0);
  all.recover(out.picks);
  for (std::size_t r = runs.size(); r-- > 0;) runs[r].recover(out.picks);
  out.bound = all.least()[0];
  if (!exact && price == 0) improve(graph, out.picks);
  out.cost = cost_of(graph, out.picks);
  out.bytes = bytes_of(graph, out.picks);
  return out;
}

/// The best of both, as far as it keeps to the bytes.
void take_better(Solution& best, const Solution& other, double bytes) {
  if (other.bytes <= bytes && other.cost < best.cost) {
    best.picks = other.picks;
    best.cost = other.cost;
    best.bytes = other.bytes;
  }
}

/// Of two solutions, one that keeps too much and one that costs more: the first decisions of one
/// and the others of the other, wherever the list is cut. So some blocks are spread in one way and
/// the rest in another.
void take_mixture(Solution& best, const DecisionGraph& graph, const Picks& a, const Picks& b,
                  double bytes) {
  for (const bool a_first : {true, false}) {
    const Picks &first = a_first ? a : b, &second = a_first ? b : a;
    Solution mixed;
    mixed.picks = second;
    for (std::size_t cut = 0; cut < first.size(); ++cut) {
      if (mixed.picks[cut] == first[cut]) continue;
      mixed.picks[cut] = first[cut];
      mixed.bytes = bytes_of(graph, mixed.picks);
      if (mixed.bytes > bytes) continue;
      mixed.cost = cost_of(graph, mixed.picks);
      take_better(best, mixed, bytes);
    }
  }
}

/// With a price for bytes the relaxed optimum is a lower bound, for any price: the price that gives
/// the best one is searched, and the picks on the way that keep to the bytes are candidates.
Solution solve_within(const DecisionGraph& graph, const SolveLimits& limits, const Solution& free,
                      const std::vector<Repeat>& repeats) {
  Solution out = free;
  out.cost = kNever;
  Picks above = free.picks, below;  // the limit: the nearest of each kind
  double least = free.bytes;
  double low = 0, high = std::max(1e-6, 0.01 * free.cost / std::max(1.0, free.bytes));
  const auto at_price = [&](double price) {
    Solution priced = solve_priced(graph, limits, price, repeats);
    out.bound = std::max(out.bound, std::floor(priced.bound - price * limits.bytes));
    const bool keeps = priced.bytes <= limits.bytes;
    (keeps ? below : above) = priced.picks;
    improve(graph, priced.picks, limits.bytes);
    priced.cost = cost_of(graph, priced.picks);
    priced.bytes = bytes_of(graph, priced.picks);
    take_better(out, priced, limits.bytes);
    least = std::min(least, priced.bytes);
    return keeps;
  };
  for (int i = 0; i < 40 && !at_price(high); ++i) low = high, high *= 8;
  for (int i = 0; i < 24 && high - low > 1e-4 * high; ++i) {
    const double middle = (low + high) / 2;
    (at_price(middle) ? high : low) = middle;
  }
  if (!below.empty()) take_mixture(out, graph, above, below, limits.bytes);
  out.bound = std::min(out.bound, out.cost);
  if (out.cost == kNever) out.bytes = least;
  return out;
}

}  // namespace

void improve(const DecisionGraph& graph, Picks& picks, double bytes) {
  std::vector<std::vector<const Link*>> links(at(graph.size()));
  for (const Link& link : graph.links) {
    links[at(link.from)].push_back(&link);
    links[at(link.to)].push_back(&link);
  }
  double kept = bytes_of(graph, picks);
  bool changed = true;
  for (int round = 0; changed && round < 50; ++round) {
    changed = false;
    for (int i = 0; i < graph.size(); ++i) {
      const Options& options = *graph.decisions[at(i)].options;
      const auto cost = [&](int option) {
        Cost sum = options.costs[at(option)];
        for (const Link* link : links[at(i)])
          sum += link->from == i ? link->table->at(option, picks[at(link->to)])
                                 : link->table->at(picks[at(link->from)], option);
        return sum;
      };
      const auto keeps = [&](int option) {
        return options.bytes.empty() ? 0 : options.bytes[at(option)];
      };
      int& pick = picks[at(i)];
      Cost now = cost(pick);
      for (int option = 0; option < options.size(); ++option) {
        const double then = kept - keeps(pick) + keeps(option);
        const Cost price = cost(option);
        // Above the limit, what keeps less is better; within it, what costs less.
        const bool better =
            kept > bytes ? then < kept && price < kNever : price < now && then <= bytes;
        if (!better) continue;
        kept = then, pick = option, now = price, changed = true;
      }
    }
  }
}

Solution solve(const DecisionGraph& graph, const SolveLimits& limits) {
  const std::vector<Repeat> repeats = limits.fold ? find_repeats(graph) : std::vector<Repeat>{};
  Solution out = solve_priced(graph, limits, 0, repeats);
  if (out.bytes > limits.bytes) out = solve_within(graph, limits, out, repeats);
  return out;
}

}  // namespace tessera
