#pragma once
/// Why a plan is the best: what binds it, and what the others lack.

#include <string>
#include <vector>

#include "tessera/planner/planner.h"

namespace tessera {

/// Products, bandwidth, bubble and memory: what each adds to a step of the best. Memory: what it
/// takes longer than `free_seconds`, those of the best plan without caps.
std::vector<Share> binds_of(const SearchResult& found, double free_seconds);

/// The next best plans, no two of which differ from the best in the same respects alone; then the
/// fastest that does not fit. What short models tell is compared with what such models tell of the
/// best, and whole plans with the whole best one.
std::vector<Alternative> alternatives_of(const SearchResult& found, const RunConfig& base,
                                         const StageCaps& caps);

/// "12.345 ms", "1.234 s"
std::string seconds_text(double seconds);

}  // namespace tessera
