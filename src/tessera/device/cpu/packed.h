#pragma once
/// Weights packed once per step for the products that read them.

#include <optional>
#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

/// The layout in which `operand` of this matmul is packed on a device of `threads` threads; nullopt
/// where the product cannot read it so, or where packing would cost more than it gains.
std::optional<Layout> packed_layout(const OpCall& call, int operand, std::int64_t uses, int threads,
                                    bool always);

std::span<const KernelEntry> packed_kernels();

}  // namespace tessera::cpu
