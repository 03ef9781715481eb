#pragma once
/// Matrix products of the CPU: an einsum as loops over products of two matrices, cut among the
/// threads.

#include <optional>
#include <span>

#include "tessera/device/cpu/kernels.h"
#include "tessera/gemm/onednn.h"

namespace tessera::cpu {

std::span<const KernelEntry> matmul_kernels();

/// A matmul that is one product: `swapped` where operand 1 is its A. Nullopt where it needs loops
/// around products, or is added onto an operand.
struct SingleProduct {
  GemmShape shape;
  bool swapped = false;
};
std::optional<SingleProduct> single_product(const KernelRequest& request);

}  // namespace tessera::cpu
