#pragma once
/// What the planner says: a table for people, JSON for programs.

#include <string>

#include "tessera/planner/planner.h"

namespace tessera {

std::string to_text(const PlanAnswer& answer, const PlanQuestion& question);
/// One object; docs/guides/plan.md has its keys.
std::string to_json(const PlanAnswer& answer, const PlanQuestion& question);

}  // namespace tessera
