#pragma once
/// Where offloaded tensors are kept, and so which bytes a memory cap counts.

#include <cstdint>

#include "tessera/config/config.h"
#include "tessera/plan/plan.h"

namespace tessera {

enum class HostPool : std::uint8_t {
  Apart,       // the host's own memory, beside that of its devices
  SameMemory,  // on a CPU: the main memory that holds the device's tensors too
  File,        // remote-device nvme
};
HostPool host_pool_of(const RunConfig& config);

/// Bytes of the host pool, by what holds them.
struct HostUse {
  std::int64_t memory = 0, file = 0;
};
HostUse host_use(const RunConfig& config, std::int64_t host_bytes);

/// Bytes that count against the cap of a device: its own, and offloaded ones that are in the same
/// memory.
std::int64_t capped_bytes(const RunConfig& config, const Plan& plan);

}  // namespace tessera
