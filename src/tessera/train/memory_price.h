#pragma once
/// What the plans of a run take, for comparing ways to run it.

#include <cstdint>

#include "tessera/config/config.h"
#include "tessera/device/device.h"

namespace tessera {

struct MemoryPrice {
  std::int64_t peak_bytes = 0;    // of a device, on the fullest rank
  std::int64_t host_bytes = 0;    // of the pool on the host, on the rank that has most there
  std::int64_t capped_bytes = 0;  // that a memory cap counts, on the rank that has most of them
  std::int64_t batch_bytes = 0;   // of these: of a step's samples, which no choice changes
  double seconds = 0;             // step_seconds of the slowest rank, on the machine of the run
  std::int64_t work = 0;          // of compiling: about so many calls
};

/// Compiles what the run of a complete `config` with a vocabulary size executes.
MemoryPrice memory_price(const RunConfig& config, Device& device);

}  // namespace tessera
