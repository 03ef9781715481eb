#pragma once
/// Where values are wanted, before anything is decided: what is pinned, and what follows from it
/// for the values above.

#include <optional>

#include "tessera/ir/value_table.h"
#include "tessera/passes/state_places.h"
#include "tessera/passes/told.h"

namespace tessera {

enum class Firmness : std::uint8_t {
  Hint,  // offers its axes
  Soft,  // costs what it takes to get there; sums are finished toward it
  Hard,  // the value will lie so
};

struct Demand {
  Stands stands;
  Firmness firmness = Firmness::Hard;
};
using Demands = ValueTable<std::optional<Demand>>;

/// Of forward and update values. Hard: pinned values, next values of states, finished gradients;
/// soft: what an op that was told how to lie reads.
/// From there demands travel upward through nodes that reduce nothing, to operands with as many
/// dims: soft, or as a hint where a node joins several values that may all be partial, so that a
/// sum that could be merged is not split.
Demands find_demands(const Graph& graph, const StatePlaces& places, const Told& told,
                     const Axes& axes);

}  // namespace tessera
