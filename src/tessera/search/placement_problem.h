#pragma once
/// A step and a mesh as decisions: how each op of the forward pass is spread, where its results are
/// kept, and where states are read.

#include <map>

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"
#include "tessera/search/op_menus.h"

namespace tessera {

/// Decisions of a step:
///
///   an op        its factors on each axis and where results are kept (op_menu.h); backward follows
///   a kept value where a result is kept, if several ways of its op keep it alike
///   a state      where forward and backward read it; it is updated there, and its gradient summed
///   a read value of a value with several readers: where it is brought for all of them, and as
///                which sum their gradients come back
///
/// Links between a value and its reader are what moves between them, forward and back. Ops,
/// decisions and links that are alike are priced once, so that repeated blocks cost nothing more.
class PlacementProblem {
 public:
  /// `graph`: in Form::Global, as propagate takes it but for uses. Pins of the strategy hold: of
  /// ops, states, batch inputs and named values.
  PlacementProblem(const Graph& graph, const Strategy& strategy, const Machine& machine);

  const DecisionGraph& decisions() const { return decisions_; }
  /// The decision of a forward op; -1: it has none.
  int decision_of(NodeId id) const { return op_decisions_[static_cast<std::size_t>(id)]; }
  const OpMenu& menu_of(NodeId id) const { return *menus_.of[static_cast<std::size_t>(id)]; }
  /// Where a batch input or a constant lies.
  const AxisPlacements& stands_of(NodeId leaf) const { return leaves_.at(leaf); }
  /// The strategy with the picks pinned: each op with operands and results, each parameter.
  Strategy pinned(const Picks& picks) const;

  /// How many ways all ops have together, before those that are alike were made one.
  std::int64_t options() const;
  /// Classes of ops: what was priced.
  int classes() const { return static_cast<int>(menus_.classes.size()); }
  Prices& prices() { return prices_; }

 private:
  class Maker;
  const Graph& graph_;
  Strategy strategy_;
  Prices prices_;
  DecisionGraph decisions_;
  std::vector<int> op_decisions_;
  OpMenus menus_;
  struct StateDecision {
    std::string path;
    int decision = 0, ndim = 0;
    std::shared_ptr<const std::vector<AxisPlacements>> forms;
  };
  std::vector<StateDecision> states_;
  std::map<NodeId, AxisPlacements> leaves_;
};

}  // namespace tessera
