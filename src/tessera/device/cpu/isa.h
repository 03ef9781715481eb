#pragma once
/// Instruction sets: what this processor has, and what libraries may use of it.

#include "tessera/device/device.h"

namespace tessera::cpu {

/// The highest compiled level of this processor that the system lets this process use, and what
/// suits it.
CpuChoices processor_choices();

/// Caps Highway and oneDNN, which know one level per process, at the level of its first device.
/// Their f32 code is the same from avx512 on, so that devices which differ above that can share a
/// process.
/// Errors: Fault::Usage: a device before this one needed another level.
void cap_libraries(Isa isa);

}  // namespace tessera::cpu
