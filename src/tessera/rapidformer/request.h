#pragma once
/// What the flags of Rapidformer and Megatron-LM ask for, as a run of Tessera.

#include "tessera/apps/training.h"
#include "tessera/rapidformer/asked_devices.h"

namespace tessera {

/// Who is started with the flags: the command, or a program whose functions say what the data and
/// the model are where flags do not; or a program whose own data it is, so that it makes of flags of
/// data what it likes.
enum class FlagsOf { Command, Program, OwnData };

/// Reads the flags; docs/from/rapidformer.md has what each becomes. What is wrong with them is in the
/// problems of the result, all of it. `environment` has its variables.
/// Errors: Fault::Usage: comments of a script have become arguments, so that the rest is missing.
AskedTraining read_rapidformer_flags(
    const Arguments& arguments, FlagsOf whose,
    const EnvironmentVariables& environment = process_environment(),
    const OwnFamilies& families = {});

/// A run that shows what Rapidformer does, and whose model is in OUTPUT/hf at its end.
void show_as_rapidformer(AskedTraining& asked);

}  // namespace tessera
