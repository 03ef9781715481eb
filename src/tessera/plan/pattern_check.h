#pragma once
/// Patterns of a strategy that match nothing: a name that was misspelt must not pass for a choice.

#include <vector>

#include "tessera/plan/compile.h"

namespace tessera {

/// Checks patterns against all programs of a plan together: one alone may lack a match.
/// Errors: a pin that is not optional and matches no state, batch input or named value; a pattern
/// of `unsharded` or `group` that matches no parameter, or of `recompute` or
/// `chunk` that matches no block, with near names.
void require_patterns_match(const std::vector<ProgramSource>& sources);

}  // namespace tessera
