#include "tessera/search/solve.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/search/repeats.h"

namespace tessera {

namespace {

/// The price of a byte. Products with it are rounded down to whole grains: rounded up they would be
/// no lower bound, and sums of whole grains are exact.
struct BytePrice {
  double each = 0, grain = 1;
  Cost of(double bytes) const { return grain * std::floor(each * bytes / grain); }
};

/// No sum of costs and prices is above `most`.
BytePrice price_of_byte(double each, double most) {
  return {each, std::min(1.0, std::exp2(std::ceil(std::log2(most)) - 52))};
}

/// The graph with a price added for each byte.
std::vector<CostFunction> functions_of(const DecisionGraph& graph, const BytePrice& price) {
  std::vector<CostFunction> out;
  for (int i = 0; i < graph.size(); ++i) {
    const Options& options = *graph.decisions[at(i)].options;
    std::shared_ptr<const std::vector<Cost>> costs(graph.decisions[at(i)].options, &options.costs);
    if (price.each > 0 && !options.bytes.empty()) {
      std::vector<Cost> priced = options.costs;
      for (std::size_t k = 0; k < priced.size(); ++k) priced[k] += price.of(options.bytes[k]);
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
Solution solve_priced(const DecisionGraph& graph, const SolveLimits& limits, const BytePrice& price,
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
  if (!exact && price.each == 0) improve(graph, out.picks);
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

/// The links of each decision.
std::vector<std::vector<const Link*>> links_of(const DecisionGraph& graph) {
  std::vector<std::vector<const Link*>> out(at(graph.size()));
  for (const Link& link : graph.links) {
    out[at(link.from)].push_back(&link);
    out[at(link.to)].push_back(&link);
  }
  return out;
}

/// Picks of which one after another is changed, and their sums, which follow.
class ChangingPicks {
 public:
  ChangingPicks(const DecisionGraph& graph, Picks picks)
      : graph_(graph), links_(links_of(graph)), picks_(std::move(picks)) {
    for (int i = 0; i < graph.size(); ++i) count(graph.decisions[at(i)].options->costs[pick(i)], 1);
    for (const Link& link : graph.links) count(cost_of_link(link), 1);
    bytes_ = bytes_of(graph, picks_);
  }
  const Picks& picks() const { return picks_; }
  Cost cost() const { return impossible_ > 0 ? kNever : cost_; }
  double bytes() const { return bytes_; }
  void change(int i, int to) {
    count_around(i, -1);
    picks_[at(i)] = to;
    count_around(i, 1);
  }

 private:
  std::size_t pick(int i) const { return at(picks_[at(i)]); }
  Cost cost_of_link(const Link& link) const {
    return link.table->at(picks_[at(link.from)], picks_[at(link.to)]);
  }
  void count(Cost cost, int times) {
    if (cost == kNever)
      impossible_ += times;
    else
      cost_ += times * cost;
  }
  void count_around(int i, int times) {
    const Options& options = *graph_.decisions[at(i)].options;
    count(options.costs[pick(i)], times);
    for (const Link* link : links_[at(i)]) count(cost_of_link(*link), times);
    if (!options.bytes.empty()) bytes_ += times * options.bytes[pick(i)];
  }

  const DecisionGraph& graph_;
  std::vector<std::vector<const Link*>> links_;
  Picks picks_;
  Cost cost_ = 0;
  int impossible_ = 0;
  double bytes_ = 0;
};

/// Mixes two solutions, one that keeps too many bytes and one that costs more: the first decisions
/// of one and the rest of the other, with every cut tried. So some blocks are spread in one way and
/// the rest in another.
void take_mixture(Solution& best, const DecisionGraph& graph, const Picks& a, const Picks& b,
                  double bytes) {
  for (const bool a_first : {true, false}) {
    const Picks &first = a_first ? a : b, &second = a_first ? b : a;
    ChangingPicks mixed(graph, second);
    Cost least = best.cost;
    int cut = 0;  // decisions that the cheapest mixture has of the first
    for (int i = 0; i < graph.size(); ++i) {
      mixed.change(i, first[at(i)]);
      if (mixed.bytes() <= bytes && mixed.cost() < least) least = mixed.cost(), cut = i + 1;
    }
    Solution found;
    found.picks = second;
    std::copy_n(first.begin(), cut, found.picks.begin());
    found.cost = cost_of(graph, found.picks);
    found.bytes = bytes_of(graph, found.picks);
    take_better(best, found, bytes);
  }
}

/// No picks that are possible cost more.
Cost most_of(const DecisionGraph& graph) {
  std::map<const void*, Cost> known;
  const auto most = [&](const std::vector<Cost>& costs) {
    const auto [found, is_new] = known.try_emplace(costs.data(), 0);
    for (const Cost cost : is_new ? std::span(costs) : std::span<const Cost>())
      found->second = cost < kNever ? std::max(found->second, cost) : found->second;
    return found->second;
  };
  Cost out = 0;
  for (const Decision& decision : graph.decisions) out += most(decision.options->costs);
  for (const Link& link : graph.links) out += most(link.table->costs);
  return out;
}

/// With a price for bytes the relaxed optimum is a lower bound, for any price: the price that gives
/// the best one is searched, and the picks on the way that keep to the bytes are candidates.
Solution solve_within(const DecisionGraph& graph, const SolveLimits& limits, const Solution& free,
                      const std::vector<Repeat>& repeats) {
  Solution out = free;
  out.cost = kNever;
  if (free.bound == kNever) return out;
  Picks above = free.picks, below;  // the limit: the nearest of each kind
  double least = free.bytes;
  const Cost most = most_of(graph);
  double fullest = 1;  // bytes: no picks keep more
  for (const Decision& decision : graph.decisions) {
    const std::vector<double>& bytes = decision.options->bytes;
    if (!bytes.empty()) fullest += *std::max_element(bytes.begin(), bytes.end());
  }
  const Cost scale = free.cost < kNever ? free.cost : free.bound;
  double low = 0, high = std::max(1e-6, 0.01 * scale / std::max(1.0, free.bytes));
  const auto at_price = [&](double price) {
    Solution priced =
        solve_priced(graph, limits, price_of_byte(price, most + price * fullest), repeats);
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
  // A byte that costs more than all else: the leanest picks, or the proof that all keep too much.
  const double dear = 2 * most + graph.size() + 1;
  at_price(dear);
  if (out.bound > most) {
    out.bound = kNever;
    out.bytes = least;
    return out;
  }
  above = free.picks;
  for (; high < dear && !at_price(high); high *= 8) low = high;
  for (int i = 0; i < 24 && high - low > 1e-4 * high; ++i) {
    const double middle = (low + high) / 2;
    (at_price(middle) ? high : low) = middle;
  }
  if (!below.empty()) take_mixture(out, graph, above, below, limits.bytes);
  if (out.cost == kNever) out.bytes = least;
  return out;
}

}  // namespace

void improve(const DecisionGraph& graph, Picks& picks, double bytes) {
  const std::vector<std::vector<const Link*>> links = links_of(graph);
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
  Solution out = solve_priced(graph, limits, {}, repeats);
  if (out.bytes > limits.bytes) out = solve_within(graph, limits, out, repeats);
  return out;
}

}  // namespace tessera
