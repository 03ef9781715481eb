#pragma once
/// Strategies of tensors that no op makes: batch inputs and states.

#include <string>
#include <vector>

#include "tessera/shard/device_matrix.h"

namespace tessera {

/// A batch input or a state, which has no rule: a matrix of its dims, so split; ranks that are left
/// over come first and hold the same. Errors: as of spread(); `what` begins each reason.
TensorLayout spread_tensor(const std::string& what, const Shape& shape,
                           const std::vector<std::int64_t>& splits, std::int64_t devices);

}  // namespace tessera
