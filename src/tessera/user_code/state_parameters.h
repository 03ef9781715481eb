#pragma once
/// The parameters among states that were gathered.

#include <vector>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/pretrained/save_pretrained.h"

namespace tessera {

/// `states` outlive the reader.
ParameterReader parameters_among(const std::vector<CheckpointTensor>& states);

}  // namespace tessera
