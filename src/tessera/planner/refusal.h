#pragma once
/// Where the planner finds nothing: what is nearest, and what would help.

#include <vector>

#include "tessera/planner/planner.h"

namespace tessera {

/// Some choices that take least by what short models tell, compiled whole: the leanest first.
std::vector<Candidate> leanest_of(const SearchResult& found, const Verify& verify);

/// Errors: Fault::Usage, always: no choice is legal, with what was asked for that rules all out; or
/// what fits best of all that was tried, `leanest`, is above the cap, or above the host's memory.
[[noreturn]] void refuse(const PlanQuestion& question, const std::vector<Candidate>& leanest);

}  // namespace tessera
