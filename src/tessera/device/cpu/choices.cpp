#include "tessera/device/cpu/isa.h"

namespace tessera {

// Alone in its file: tests link another one in its place, to be on a lesser machine.
CpuChoices machine_choices() { return cpu::processor_choices(); }

}  // namespace tessera
