#pragma once
/// One run of a program on all devices of a process.

#include <vector>

#include "tessera/accelerator/loaded_programs.h"

namespace tessera {

/// Starts the pieces of all stages, each as soon as its messages are on the way, and waits for the
/// last. Buffers go from device to device. `seats`: of all ranks, those of the first stage first.
/// Errors: Broken: stages that wait for each other; what a piece runs into.
void run_stages(const LoadedProgram& program, const std::vector<Seat>& seats,
                const pjrt::Client& client);

}  // namespace tessera
