#pragma once
/// The least sum of functions of a few variables each, by eliminating one variable after another
/// (bucket elimination over tables of minima).

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/search/decision_graph.h"

namespace tessera {

/// A table over variables: row by row, the last variable of the scope fastest.
struct CostFunction {
  std::vector<int> scope;
  std::shared_ptr<const std::vector<Cost>> costs;
};

class Elimination {
 public:
  /// `sizes`: of all variables, the numbers of their values. `keep`: those that are not eliminated.
  /// A table of more than `limit` entries is not made: functions are then minimised in groups, and
  /// the result is a lower bound.
  Elimination(std::vector<int> sizes, std::vector<CostFunction> functions, std::vector<int> keep,
              std::int64_t limit);

  /// Over `keep`, in that order: the least cost for each of their values.
  const std::vector<Cost>& least() const { return *least_; }
  bool exact() const { return exact_; }
  /// The most variables on which a table depended.
  int width() const { return width_; }
  std::int64_t largest_table() const { return largest_; }

  /// Sets the values of the eliminated variables where those of `keep` are given: the best ones if
  /// exact.
  void recover(Picks& values) const;

 private:
  struct Bucket {
    int variable = 0;
    std::vector<CostFunction> functions;
  };
  /// Size of eliminating a variable: entries of its table, and how many variables that is over.
  using Size = std::pair<std::int64_t, std::size_t>;
  Size size_of(int variable) const;
  std::vector<int> neighbours_of(int variable) const;
  void eliminate_all(const std::vector<int>& open);
  void take(CostFunction f);
  void eliminate(int variable);
  CostFunction minimise(int variable, const std::vector<CostFunction>& functions,
                        std::vector<int> scope);
  std::int64_t entries(const std::vector<int>& scope) const;

  std::vector<int> sizes_;
  std::vector<CostFunction> functions_;        // without costs: a bucket has it
  std::vector<std::vector<int>> of_variable_;  // the functions over each that no bucket has
  std::vector<Bucket> buckets_;                // in the order of elimination
  std::shared_ptr<const std::vector<Cost>> least_;
  std::int64_t limit_, largest_ = 0;
  int width_ = 0;
  bool exact_ = true;
};

}  // namespace tessera
