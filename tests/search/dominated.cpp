#include "search/dominated.h"

#include <algorithm>
#include <map>

#include "tessera/base/index.h"

namespace tessera::test {

namespace {

/// A decision as far as dominance goes: its options, and its links from its own side.
struct Context {
  const Options* options = nullptr;
  std::vector<std::pair<const CostTable*, bool>> links;  // true: its options are the columns
  friend auto operator<=>(const Context&, const Context&) = default;
};

class Judge {
 public:
  Judge(const Context& context, bool bytes) : options_(*context.options), bytes_(bytes) {
    for (const auto& [table, columns] : context.links) {
      // Row by row of its own options, so that two of them are compared in one sweep.
      const int n = columns ? table->columns : table->rows;
      const int others = columns ? table->rows : table->columns;
      std::vector<Cost> own;
      if (columns) {
        own.resize(table->costs.size());
        for (int r = 0; r < others; ++r) {
          for (int c = 0; c < n; ++c) own[at(c) * at(others) + at(r)] = table->at(r, c);
        }
      } else {
        own = table->costs;
      }
      sides_.push_back({std::move(own), others});
    }
  }

  std::vector<int> left() const {
    // Cheap ones first: they dominate most.
    std::vector<int> order(options_.costs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return options_.costs[at(a)] < options_.costs[at(b)]; });
    std::vector<int> out;
    for (const int option : order) {
      const bool needed =
          std::none_of(out.begin(), out.end(), [&](int other) { return dominates(other, option); });
      if (needed) out.push_back(option);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  bool dominates(int better, int option) const {
    const bool counts = bytes_ && !options_.bytes.empty();
    if (counts && options_.bytes[at(better)] > options_.bytes[at(option)]) return false;
    Cost slack = options_.costs[at(option)] - options_.costs[at(better)];
    for (const auto& [costs, others] : sides_) {
      const Cost *mine = costs.data() + at(better) * at(others),
                 *theirs = costs.data() + at(option) * at(others);
      Cost most = -kNever;
      for (int k = 0; k < others && most <= slack; ++k) {
        if (theirs[k] < kNever) most = std::max(most, mine[k] - theirs[k]);
      }
      if (most > slack) return false;
      if (most > -kNever) slack -= most;
    }
    return true;
  }

  const Options& options_;
  bool bytes_;
  std::vector<std::pair<std::vector<Cost>, int>> sides_;
};

}  // namespace

Allowed undominated(const DecisionGraph& graph, bool bytes) {
  std::vector<Context> contexts(at(graph.size()));
  for (int i = 0; i < graph.size(); ++i)
    contexts[at(i)].options = graph.decisions[at(i)].options.get();
  for (const Link& link : graph.links) {
    contexts[at(link.from)].links.push_back({link.table.get(), false});
    contexts[at(link.to)].links.push_back({link.table.get(), true});
  }
  Allowed out(at(graph.size()));
  std::map<Context, std::vector<int>> known;
  for (int i = 0; i < graph.size(); ++i) {
    Context& context = contexts[at(i)];
    std::sort(context.links.begin(), context.links.end());
    auto [found, is_new] = known.try_emplace(context);
    if (is_new) found->second = Judge(context, bytes).left();
    out[at(i)] = found->second;
  }
  return out;
}

}  // namespace tessera::test
