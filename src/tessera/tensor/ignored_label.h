#pragma once

#include <cstdint>

namespace tessera {

/// The label of a position that does not count in a loss.
inline constexpr std::int32_t kIgnoredLabel = -100;
/// The same of labels that are numbers, which lie nearer to 0. Its square is a number of f32 too, so
/// that a loss of it, times 0, is 0.
inline constexpr float kIgnoredNumber = -0x1p60F;

}  // namespace tessera
