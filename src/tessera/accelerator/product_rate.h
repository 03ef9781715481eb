#pragma once
/// How fast a device multiplies matrices.

#include "tessera/accelerator/loaded_programs.h"

namespace tessera {

/// FLOP/s of the best f32 product of square matrices on one device, measured for about `seconds`.
double product_rate(LoadedPrograms& devices, double seconds);

}  // namespace tessera
