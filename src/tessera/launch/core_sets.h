#pragma once
/// The cores to which ranks of a launch are bound.

#include <sched.h>

#include <span>
#include <vector>

namespace tessera {

/// The cores that this process may use, each with its hardware threads, in the machine's order.
std::vector<cpu_set_t> usable_core_sets();

/// The cores of one of `ranks` ranks, of which no two share one: neighbours, as many for each rank.
/// There are at least as many cores as ranks.
cpu_set_t cores_of_rank(std::span<const cpu_set_t> cores, int rank, int ranks);

}  // namespace tessera
