#pragma once
/// The planner's answer as a page that a browser shows by itself.

#include <string>

#include "tessera/planner/planner.h"

namespace tessera {

/// The plan and its time; where ranks lie in the machine; the pipeline in time; memory by stage;
/// what binds, other plans, and what more of something would bring.
std::string to_html(const PlanAnswer& answer, const PlanQuestion& question);

/// A drawing of the first servers: a box for each device, with its stage and its place along the
/// axes of the mesh.
std::string topology_svg(const PlanAnswer& answer, const PlanQuestion& question);

}  // namespace tessera
