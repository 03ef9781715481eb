#pragma once
/// What is told where a device's memory is too small.

#include <string>

#include "tessera/accelerator/loaded_programs.h"

namespace tessera {

/// "program train wants 2.76 GiB of each device (...), which has 2 GiB ...; what makes it less": as
/// far as compiler and device tell. `loaded`: null where it could not be compiled.
std::string memory_text(const LoadedPrograms& devices, const Plan& plan, std::size_t program,
                        const LoadedProgram* loaded);

}  // namespace tessera
