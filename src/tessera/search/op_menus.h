#pragma once
/// The ways of all ops of a step.

#include <memory>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/strategy.h"
#include "tessera/passes/state_places.h"
#include "tessera/search/gradient_flow.h"
#include "tessera/search/op_menu.h"

namespace tessera {

struct OpMenus {
  std::vector<const OpMenu*> of;  // per node; nullptr: it is no op of the forward pass
  std::vector<std::unique_ptr<const OpMenu>> classes;  // of ops that are alike, each priced once
};

/// Pins of ops and of named values hold.
/// Errors: an op that no axis of the mesh can be kept away from.
OpMenus op_menus(const Graph& graph, const Strategy& strategy, const StatePlaces& places,
                 const GradientFlow& flow, Prices& prices);

}  // namespace tessera
