#pragma once
/// What a run gives up so that it fits under its memory cap.

#include <cstdint>
#include <functional>
#include <string>

#include "tessera/config/config.h"
#include "tessera/device/device.h"

namespace tessera {

/// Where config.memory_cap is below the planned peak of the fullest rank: of all that
/// memory_space_of has, takes what fits at the least price of a step, so far as a MemorySearch
/// finds it. `config` is complete and has a vocabulary size; `device` has the threads of one rank.
/// `notice` is told when the search begins.
///
/// Returns what was chosen and what it costs; empty: nothing had to change.
///
/// Errors:  Fault::Usage: nothing fits; the least that is needed, with which flags, and what was
/// asked for that stands against it.
std::string fit_memory(RunConfig& config, Device& device,
                       const std::function<void(const std::string&)>& notice = {});

}  // namespace tessera
