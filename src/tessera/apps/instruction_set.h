#pragma once
/// The instruction set of a command's devices.

#include "tessera/comm/communicator.h"
#include "tessera/train/config.h"

namespace tessera {

/// Sets config.choices to what the fields say of this machine; on launched ranks, all of which call
/// this, to the lowest level among them and rank 0's packing. Errors, as problems: choices_of.
void take_choices(RunConfig& config, Communicator* launched, Problems& problems);

}  // namespace tessera
