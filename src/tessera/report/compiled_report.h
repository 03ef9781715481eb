#pragma once
/// What a compiler of accelerators says of a step, for people and programs.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tessera/plan/compiled_bytes.h"

namespace tessera {

/// "1.08 GiB, of which temporaries 310 MiB, by pjrt:cuda xla_cuda_plugin.so 0.116 for 8 x NVIDIA
/// H100 80GB HBM3 in 87.1 s"; of a pipeline, those of the stage that takes most.
std::string to_text(const CompiledBytes& compiled);
nlohmann::ordered_json to_json(const CompiledBytes& compiled);

}  // namespace tessera
