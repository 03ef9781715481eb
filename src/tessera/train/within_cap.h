#pragma once
/// A plan against the memory cap of its run.

#include <cstdint>

#include "tessera/config/config.h"
#include "tessera/train/run_requirements.h"

namespace tessera {

/// Bytes of the fullest rank that count against the cap, of `all` ranks together.
std::int64_t capped_bytes(const RunConfig& config, const RunRequirements& all);

/// Errors: Fault::Usage: the plan of a rank takes more than config.memory_cap; both.
void require_within_cap(const RunConfig& config, const RunRequirements& all);

}  // namespace tessera
