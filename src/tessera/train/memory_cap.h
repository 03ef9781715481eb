#pragma once
/// The memory cap: how much memory of a device may be planned.

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/train/config.h"
#include "tessera/train/facts.h"

namespace tessera {

/// "8GB" (8e9 bytes), "10GiB" (10 x 2^30), "512MiB", "10000000"; nothing for "none".
/// Errors: Fault::Usage: another text, or less than a byte.
std::optional<std::int64_t> parse_memory_cap(std::string_view text);

/// Bytes of the fullest rank that count against the cap, of `all` ranks together.
std::int64_t capped_bytes(const RunConfig& config, const RankFacts& all);

/// Errors: Fault::Usage: the plan of a rank takes more than config.memory_cap; both.
void require_within_cap(const RunConfig& config, const RankFacts& all);

}  // namespace tessera
