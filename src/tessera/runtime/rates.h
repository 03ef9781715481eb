#pragma once
/// The best rates of a device, measured, from which the floors of kernels are computed.

#include <cstdint>
#include <vector>

#include "tessera/device/device.h"

namespace tessera {

/// The best of several passes over operands that stay where they are.
struct StreamRate {
  double bytes = 0;  // of one pass: read and written
  double bytes_per_s = 0;
};

struct DeviceRates {
  double flops_per_s = 0;           // of an f32 matrix product
  std::vector<StreamRate> streams;  // from what fits the nearest cache to what fits none

  /// Of a kernel that moves `bytes`: the rate of the largest stream that moves no more, as if the
  /// kernel before had left the operands in the cache that holds them.
  double bytes_per_s(double bytes) const;
  /// The least seconds of a call: what its arithmetic takes or what its bytes take, whichever is
  /// more.
  double floor_seconds(double flops, double bytes) const;
};

/// Measures with the device's own kernels, on its own threads; takes a second, and
/// memory of memory's size (kLargestStream) that is given back.
DeviceRates measure_rates(Device& device);

/// FLOP/s of the best f32 matrix product alone, in about `seconds` at most.
double product_rate(Device& device, double seconds);

/// Bytes of the largest stream: several times any last-level cache that a device's threads share.
inline constexpr std::int64_t kLargestStream = 256 << 20;

}  // namespace tessera
