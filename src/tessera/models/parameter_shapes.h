#pragma once
/// The parameters of a model, without compiling it.

#include <map>
#include <string>

#include "tessera/models/config.h"
#include "tessera/tensor/shape.h"

namespace tessera {

/// By name, their shapes. `config` is complete and has no problems.
std::map<std::string, Shape, std::less<>> parameter_shapes(const ModelConfig& config);

}  // namespace tessera
