#pragma once
/// Why a plan is the best: what binds it, and what the others lack.

#include "tessera/planner/planner.h"

namespace tessera {

/// Products, bandwidth, bubble and memory: what each adds to a step. Memory: what the cap costs.
std::vector<Share> binds_of(const SearchResult& found);

/// The next best plans, no two of which differ from the best in the same respects alone; then the
/// fastest that does not fit.
std::vector<Alternative> alternatives_of(const SearchResult& found,
                                         const std::optional<std::int64_t>& cap);

}  // namespace tessera
