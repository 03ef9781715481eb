#pragma once
/// Sizes as multiples of a grain.

#include <cstdint>

namespace tessera {

/// The least multiple of `to` that is not below n. n >= 0, to > 0.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace tessera
