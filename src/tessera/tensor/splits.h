#pragma once
/// How often dims of tensors are cut.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Per tensor, per dim, into how many parts it is cut: ((2, 4), (4, 1)).
using Splits = std::vector<std::vector<std::int64_t>>;
std::string to_text(const Splits& splits);

}  // namespace tessera
