#pragma once
/// A problem of decisions: each takes one of its options; options cost, and so do pairs of options
/// of two decisions that are linked. Nothing here knows what the decisions are about.

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

/// Whole picoseconds: sums are exact up to 2^53 of them, so that equal costs are equal.
using Cost = double;
inline constexpr Cost kNever = std::numeric_limits<Cost>::infinity();

/// Rows are the options of one decision, columns those of another; row by row.
struct CostTable {
  int rows = 0, columns = 0;
  std::vector<Cost> costs;
  Cost at(int row, int column) const {
    return costs[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)];
  }
};

/// Costs of options, and the bytes that they keep on a device; decisions of one class share them.
struct Options {
  std::vector<Cost> costs;
  std::vector<double> bytes;  // empty: none
  int size() const { return static_cast<int>(costs.size()); }
};

struct Decision {
  std::string name;
  /// The repeated part of a model that it belongs to, "layers.3"; empty: none. Decisions of a block
  /// are neighbours in the list.
  std::string block;
  std::shared_ptr<const Options> options;
};

struct Link {
  int from = 0, to = 0;  // decisions; from < to
  std::shared_ptr<const CostTable> table;
};

struct DecisionGraph {
  std::vector<Decision> decisions;
  std::vector<Link> links;
  int size() const { return static_cast<int>(decisions.size()); }
};

/// The option picked for each decision.
using Picks = std::vector<int>;
Cost cost_of(const DecisionGraph& graph, const Picks& picks);
double bytes_of(const DecisionGraph& graph, const Picks& picks);

}  // namespace tessera
