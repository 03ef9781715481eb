#pragma once
/// What a run is compared with: the best matrix products of its device.

#include "tessera/device/device.h"
#include "tessera/train/config.h"

namespace tessera {

/// FLOP/s of the best f32 product of one device, measured for half a second at most, and for about
/// a hundredth of what a run of so many `steps` may take.
double product_rate_for(const RunConfig& config, std::int64_t steps, Device& device);

}  // namespace tessera
