#pragma once
/// Demands: the placements that readers want values to have, known before anything is decided. They
/// start at pins and travel from results to operands.

#include <optional>

#include "tessera/ir/value_table.h"
#include "tessera/passes/op_decisions.h"
#include "tessera/passes/state_places.h"

namespace tessera {

enum class Firmness : std::uint8_t {
  Hint,  // offers its axes
  Soft,  // costs what it takes to get there; sums are finished toward it
  Hard,  // the value will have this placement
};

struct Demand {
  AxisPlacements on_axes;
  Firmness firmness = Firmness::Hard;
};
using Demands = ValueTable<std::optional<Demand>>;

/// The placements that readers demand of forward and update values. Hard: pinned values, next
/// values of states, finished gradients; soft: the operands of a pinned op.
/// From there demands travel upward through nodes that reduce nothing, to operands with as many
/// dims: soft, or as a hint where a node joins several values that may all be partial, so that a
/// sum that could be merged is not split.
Demands find_demands(const Graph& graph, const StatePlaces& places, const OpDecisions& decisions,
                     const Axes& axes);

}  // namespace tessera
