#pragma once
/// The memory cap: how much memory of a device may be planned.

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

/// "8GB" (8e9 bytes), "10GiB" (10 x 2^30), "512MiB", "10000000"; nothing for "none".
/// Errors: Fault::Usage: another text, or less than a byte.
std::optional<std::int64_t> parse_memory_cap(std::string_view text);

}  // namespace tessera
