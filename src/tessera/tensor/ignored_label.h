#pragma once

#include <cstdint>

namespace tessera {

/// The label of a position that does not count in a loss.
inline constexpr std::int32_t kIgnoredLabel = -100;

}  // namespace tessera
