#pragma once
/// How long steps take.

#include <cstdint>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/config/config.h"
#include "tessera/device/device.h"

namespace tessera {

/// Seconds of so many training steps on random batches, after one that is not counted; on rank 0,
/// empty on the others. `config` is complete and has a vocabulary size; every rank calls it.
std::vector<double> time_steps(const RunConfig& config, std::int64_t steps, const Backend& backend,
                               Communicator* world);

}  // namespace tessera
