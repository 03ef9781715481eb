#pragma once
/// `--check` of plan, verify and train: the compiler's passes are held to the numbers before them.

#include "tessera/apps/flags.h"
#include "tessera/train/programs.h"

namespace tessera {

Flag check_flag();

/// Compiles all stages of these programs, with PassCheck beside, and tells what was compared.
/// Errors: those of PassCheck.
Compiled compile_checked(const RunSetup& setup, WantedPrograms wanted, Device& device,
                         Console& console);

}  // namespace tessera
