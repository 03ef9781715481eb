#pragma once
/// The machine that a command plans for.

#include "tessera/comm/communicator.h"
#include "tessera/config/config.h"

namespace tessera {

/// Sets parallel.machine to what `machine` names for rank 0, which alone reads the file: ranks that
/// took different machines could choose different collectives. Launched ranks, all of which call
/// this, have been asked for the same name. Where it is empty, nothing is changed. Errors, as
/// problems: find_machine.
void take_machine(RunConfig& config, Communicator* launched, Problems& problems);

}  // namespace tessera
