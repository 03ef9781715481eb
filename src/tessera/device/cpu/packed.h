#pragma once
/// Weights packed once per step for the products that read them.

#include <optional>
#include <span>

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

/// A device that may pack.
struct Packing {
  int threads;
  bool pays;    // CpuChoices::pack_weights
  bool always;  // even where it does not pay
  bool amx;     // F32Products::Amx, whose products read weights as they lie
};

/// The layout in which `operand` of this matmul is packed; nullopt where the product cannot read it
/// so, or where packing would cost more than it gains. Products of 16-bit floats pack within the
/// call.
std::optional<Layout> packed_layout(const OpCall& call, int operand, std::int64_t uses,
                                    const Packing& packing);

std::span<const KernelEntry> packed_kernels();

}  // namespace tessera::cpu
