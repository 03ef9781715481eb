#include "tessera/device/device.h"

namespace tessera {

// In place of the processor's answer: a machine with every unit, whose products are loops
// (immintrin.h). What libraries compute stays within the real processor.
CpuChoices machine_choices() { return {Isa::Amx, true, F32Products::Amx}; }

}  // namespace tessera
