#pragma once
/// Matrix products of the CPU: an einsum as loops over oneDNN's products, cut among the threads.

#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

std::span<const KernelEntry> matmul_kernels();

}  // namespace tessera::cpu
