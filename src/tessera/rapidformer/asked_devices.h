#pragma once
/// What the environment says of devices: one process a host, CUDA_VISIBLE_DEVICES its devices.

#include <cstdint>
#include <string>

#include "tessera/launch/environment.h"

namespace tessera {

struct AskedDevices {
  std::int64_t hosts = 1;
  std::int64_t on_host = 1;
  std::string who;  // "CUDA_VISIBLE_DEVICES 4,5,6,7"; empty: nothing says how many
  std::int64_t all() const { return hosts * on_host; }
};

/// CUDA_VISIBLE_DEVICES names as many devices as it has entries: a device is some threads here, so
/// that its numbers say nothing. Empty, -1 and not set: one. NNODES with NODE_RANK: so many hosts.
/// Errors: Fault::Usage: NNODES is no number above 0.
AskedDevices asked_devices(const EnvironmentVariables& environment);

}  // namespace tessera
