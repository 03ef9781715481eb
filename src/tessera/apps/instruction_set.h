#pragma once
/// The instruction set of a command's devices.

#include "tessera/comm/communicator.h"
#include "tessera/config/config.h"

namespace tessera {

/// Sets config.choices to what the fields say of this machine; on launched ranks, all of which call
/// this, to the lowest level among them, and for the rest to what rank 0 takes. Where AMX could
/// make f32 products and no field says whether it does, that is measured, once (amx_speedup.h).
/// Errors, as problems: choices_of; a rank other than 0 throws them, since only the problems of
/// rank 0 are reported for all.
void agree_on_choices(RunConfig& config, Communicator* launched, Problems& problems);

}  // namespace tessera
