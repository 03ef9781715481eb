#pragma once
/// The command `rapidformer`: docs/from/rapidformer.md.

#include "tessera/apps/command.h"
#include "tessera/rapidformer/asked_devices.h"

namespace tessera {

/// `rapidformer --FLAG ...` trains by the flags of Rapidformer and Megatron-LM; where the first
/// word is no flag, the command is `tessera`. Returns the exit code (docs/reference/errors.md).
int run_rapidformer(const Arguments& arguments, Console& console,
                    const EnvironmentVariables& environment = process_environment());

}  // namespace tessera
