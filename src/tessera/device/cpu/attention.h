#pragma once
/// Attention of the CPU, computed in f32: tiles of queries against tiles of keys, the scores of a
/// head never held whole.

#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

std::span<const KernelEntry> attention_kernels();

}  // namespace tessera::cpu
