#pragma once
/// What the inner functions of reductions are asked to fold with.

#include <cstdint>

namespace tessera::cpu {

enum class Fold : std::uint8_t { Sum, Max, Min, SumSquares };

}  // namespace tessera::cpu
