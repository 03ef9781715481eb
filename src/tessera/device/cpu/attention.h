#pragma once
/// Attention of the CPU: tiles of queries against tiles of keys, the scores of a head never held
/// whole. Computed in f32; with AVX512-BF16, products of bf16 have operands of bf16.

#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

std::span<const KernelEntry> attention_kernels();

}  // namespace tessera::cpu
