#pragma once
/// Products of rows with the matrix of a group each: rows are sorted by group, and gathered where a
/// product reads them.

#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

std::span<const KernelEntry> grouped_kernels();

}  // namespace tessera::cpu
