#pragma once
/// The memory cap: what a run gives up so that it fits.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/device/device.h"
#include "tessera/train/config.h"

namespace tessera {

/// "8GB" (8e9 bytes), "10GiB" (10 x 2^30), "512MiB", "10000000"; nothing for "none".
/// Errors: Fault::Usage: another text, or less than a byte.
std::optional<std::int64_t> parse_memory_cap(std::string_view text);

/// Where config.memory_cap is below the planned peak of the fullest rank: raises
/// recompute-granularity, lowers micro-batch-size and offloads more, so that the plan fits at the
/// least cost, by the rates of a Machine. Nothing that was asked for is taken back. `config` is
/// complete and has a vocabulary size; `device` has the threads of one rank.
/// Returns what was chosen and what it costs; empty: nothing had to change.
/// Errors: Fault::Usage: nothing fits; the least that is needed, and with which flags.
std::string fit_memory(RunConfig& config, Device& device);

}  // namespace tessera
