#pragma once
/// Levels: what of a region can run without waiting for another stage in the middle.

#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::hlo {

/// Of one region of all stages, by stage and node: 0 for what needs no message, and of a receive
/// one more than of what is sent. A node has the highest level of its operands. What has one level
/// on one stage is one module: modules of level k wait only for those of lower levels, so stages
/// that exchange messages both ways within a region do not wait for each other.
/// Errors: Broken: a message that nobody sends; messages in a circle.
std::vector<std::vector<int>> levels_of(const std::vector<const Graph*>& stages);

}  // namespace tessera::hlo
