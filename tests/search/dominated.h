#pragma once
/// Options that no best picks need: a solver that looks at every pair of options is spared them.

#include "tessera/search/restrict.h"

namespace tessera::test {

/// Of each decision the options that are not dominated: another option of the same decision costs
/// no more, whatever its neighbours take, and, where `bytes` count, keeps no more. Some best picks
/// are left. Decisions that are alike and linked alike are left the same ones.
Allowed undominated(const DecisionGraph& graph, bool bytes);

}  // namespace tessera::test
