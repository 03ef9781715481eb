#pragma once
/// How fast a device multiplies matrices.

#include "tessera/pjrt/client.h"

namespace tessera {

/// FLOP/s of the best f32 product of square matrices on one device, measured for about `seconds`.
double product_rate(const pjrt::Client& client, double seconds);

}  // namespace tessera
