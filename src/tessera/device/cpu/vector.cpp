#include "tessera/device/cpu/vector.h"

namespace tessera::cpu {

std::span<const KernelEntry> vector_kernels() { return {}; }

bool vector_accepts_strides(const OpDef&, int) { return false; }

}  // namespace tessera::cpu
