#pragma once
/// The cheapest options of a graph of decisions.

#include "tessera/search/decision_graph.h"

namespace tessera {

struct SolveLimits {
  std::int64_t table = std::int64_t{1} << 25;  // entries of a table, looked at once each
  double bytes = kNever;                       // that all options together may keep
  bool fold = true;                            // identical blocks as one power of a table
};

struct Solution {
  Picks picks;
  Cost cost = kNever;  // of the picks; kNever: there are none within the limits
  Cost bound = 0;      // nothing costs less; kNever: proof that there are none
  double bytes = 0;  // that the picks keep; without picks within the limit: the least that was met
  int width = 0;     // the most decisions on which a table depended
  std::int64_t largest_table = 0;
  int folded = 0;  // decisions inside of runs of blocks that were solved as one
  double gap() const { return cost > 0 && cost < kNever ? (cost - bound) / cost : 0; }
};

/// Exact where tables stay within the limit and no limit of bytes binds: then bound == cost.
/// Otherwise the bound is one of a relaxation, and the picks are improved one by one.
Solution solve(const DecisionGraph& graph, const SolveLimits& limits = {});

/// Changes single picks as long as that is cheaper within `bytes`.
void improve(const DecisionGraph& graph, Picks& picks, double bytes = kNever);

}  // namespace tessera
