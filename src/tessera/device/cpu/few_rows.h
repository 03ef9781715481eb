#pragma once
/// Matrix products whose first operand has few rows.

#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

/// x [m, k] times w [n, k], where m is at most 8 and w is large.
std::span<const KernelEntry> few_rows_kernels();

}  // namespace tessera::cpu
