#pragma once
/// What the parts of `tessera plan` add to the JSON of `tessera plan --json`; docs/reference/files.md has
/// the keys.

#include <nlohmann/json_fwd.hpp>

#include "tessera/report/mesh_report.h"
#include "tessera/report/pipeline_report.h"

namespace tessera {

void add_to(nlohmann::ordered_json& json, const MeshReport& report);
/// Adds "pipeline".
void add_to(nlohmann::ordered_json& json, const PipelineReport& report);

}  // namespace tessera
