#pragma once
/// Runs of identical blocks in a graph of decisions, and what a whole run costs.

#include <vector>

#include "tessera/search/eliminate.h"

namespace tessera {

/// Blocks that follow one another and are the same: options, links inside, links to the block
/// before, and links to decisions outside of all of them.
struct Repeat {
  std::vector<std::vector<int>> blocks;  // the decisions of each, in order; those of one place
                                         // correspond
  std::vector<int> before;               // of the block before the first
  std::vector<int> borders;              // places that the block behind is linked with
  std::vector<int> outside;              // decisions with which each block is linked
};
std::vector<Repeat> find_repeats(const DecisionGraph& graph);

/// The blocks of a run as one function: of the borders of the block before it, those of its last
/// block, and what is outside. The table of one block is raised to a (min,+) power by repeated
/// squaring, so that n blocks cost as log n.
class FoldedRun {
 public:
  /// `functions`: of the graph. Takes those that it folds out of the list.
  FoldedRun(const Repeat& repeat, const std::vector<int>& sizes,
            std::vector<CostFunction>& functions, std::int64_t limit);

  /// False where a table would be larger than the limit: then nothing was taken.
  bool folds() const { return !powers_.empty(); }
  const Elimination& block() const { return *block_; }
  CostFunction function() const;
  /// Sets what lies inside of the run, where the variables of function() are set.
  void recover(Picks& values) const;

 private:
  using Power = std::vector<Cost>;  // outside x before x behind
  Power times(const Power& a, const Power& b) const;
  int between(const Power& a, const Power& b, std::int64_t outer, std::int64_t from,
              std::int64_t to) const;
  void set_borders(std::size_t first, std::size_t count, std::int64_t outer, std::int64_t from,
                   std::int64_t to, std::vector<std::int64_t>& states) const;

  Repeat repeat_;
  std::vector<int> sizes_;
  std::unique_ptr<Elimination> block_;
  std::int64_t states_ = 1, outer_ = 1;
  std::vector<Power> powers_;  // of 1, 2, 4, ... blocks
  std::vector<Power> tails_;   // of the last n blocks, where n is the sum of the lower powers used
};

}  // namespace tessera
