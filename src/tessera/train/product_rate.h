#pragma once
/// What a run is compared with: the best matrix products of its device.

#include <optional>

#include "tessera/device/device.h"
#include "tessera/runtime/backend.h"
#include "tessera/train/run_setup.h"

namespace tessera {

/// FLOP/s of the best f32 product of one device, measured for half a second at most, and for about
/// a hundredth of what a run of so many `steps` may take.
double product_rate_for(const RunSetup& setup, std::int64_t steps, const Backend& backend);

/// MFU, model FLOPs utilization: of `flops_per_s`, the best product rate of all devices, the share
/// that `model_flops` in `seconds` are. None above 1: the rate was measured while other programs
/// had the cores, or is that of f32 and the model's products are of 16 bits, so the share says
/// nothing.
std::optional<double> utilization(double model_flops, double seconds, double flops_per_s);

}  // namespace tessera
