#pragma once
/// Vector kernels of the CPU (Highway, chosen at run time): everything that is not a matrix product
/// or attention.

#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

std::span<const KernelEntry> vector_kernels();

/// True where the vector kernels of `op` read this operand at any strides whose last dim is
/// contiguous.
bool vector_accepts_strides(const OpDef& op, int operand);

}  // namespace tessera::cpu
