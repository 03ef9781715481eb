#pragma once
/// Signed numbers as indices of the standard library's containers.

#include <cstddef>
#include <cstdint>

namespace tessera {

/// `items[at(i)]`: dims, axes and ranks are signed, subscripts are not. `i` is not negative.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace tessera
