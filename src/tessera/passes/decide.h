#pragma once
/// How one node is spread over the mesh, given the placements of its operands and those that its
/// readers want. Affects speed only: partition inserts the moves that keep any decision correct.

#include <string>
#include <vector>

#include "tessera/ir/factors.h"
#include "tessera/ir/graph.h"
#include "tessera/passes/axis_placements.h"
#include "tessera/tensor/type.h"

namespace tessera {

/// A node's choice along one axis: a factor of its rule that is sharded, or one of these two.
using Choice = std::int16_t;
inline constexpr Choice kReplicate = -1;  // every rank computes all of it
inline constexpr Choice kThrough = -2;    // hands sums through that are not finished
inline constexpr Choice kRows = -4;  // the same of elements that are on one rank each: Monoid::One
using Choices = SmallVector<Choice, 8>;  // per axis

/// Per axis: the factor that the axis shards in a value with these dims and this placement;
/// kReplicate if it shards none, kNoFactor if the rule has no such factor.
inline constexpr Choice kNoFactor = -3;
Choices factors_on_axes(const Factors& rule, const Factors::Dims& dims,
                        const AxisPlacements& on_axes, const Axes& axes);

/// The facts about a node from which its choices are made.
struct Undecided {
  struct Operand {
    const TensorType* type = nullptr;
    AxisPlacements have;
    ValueId id = {};  // or that of what it repeats, which says the same
    /// Where it lies as Monoid::One: the value that says on which rank what is.
    ValueId rows_of = {};
    bool bound = false;          // a state where its use is read: what it has must stay
    bool whole_in_time = false;  // a batch input: all rows are there in every micro-batch
  };
  struct WantedPlacement {
    AxisPlacements on_axes;
    bool firm = false;  // costs what conversion costs; else it only offers its axes
  };

  /// Where the operand lies as Monoid::One by the ids that are operand 0.
  bool reads_rows(int operand, Choice factor) const {
    return rule->reads_rows(operand, factor) &&
           ins[static_cast<std::size_t>(operand)].rows_of == ins[0].id;
  }

  const Factors* rule = nullptr;
  bool expands = false;          // stat factors may be sharded
  std::uint32_t zero_where = 0;  // OpDef::zero_where
  std::vector<Operand> ins;
  std::vector<const TensorType*> outs;
  std::vector<const WantedPlacement*> wanted;  // per result, or nullptr
  const Choices* inherited = nullptr;          // of the node whose factors it shares
  const Choices* repeated = nullptr;  // of the node that it is a copy of: nothing is left to decide
  const Choices* pinned = nullptr;    // by the user: holds on all axes but those of time
  bool parts = false;                 // sums may be finished in parts, on any dim
  bool before_loop = false;           // may not be cut by time
  bool deferred = false;  // a contribution to a state's gradient: its sums are finished later
};

/// A node's choice along each axis, and the shardings that were lost by it.
struct NodeDecision {
  Choices choices;
  /// An operand arrives sharded where the rule cannot carry it on: what, per axis that was lost.
  struct LostSharding {
    int axis = 0, operand = 0, dim = 0;
  };
  std::vector<LostSharding> lost;
  int stuck = -1;  // an axis of time on which nothing is legal
};

NodeDecision decide(const Undecided& undecided, const Axes& axes);

/// Where operand `i` must lie, and where result `r` comes to lie.
AxisPlacements required(const Undecided& undecided, const Choices& choices, int i,
                        const Axes& axes);
AxisPlacements natural(const Factors& rule, const Choices& choices, int r, const Axes& axes);

/// What says on which rank the elements of results are, where they lie as Monoid::One: the first
/// operand of an op that makes such, or what says so of operands that are handed through.
ValueId rows_of(const Undecided& undecided, const Choices& choices);

}  // namespace tessera
