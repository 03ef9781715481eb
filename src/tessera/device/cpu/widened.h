#pragma once
/// Calls with 16-bit floats by kernels of f32: operands are widened, results rounded.

#include <functional>
#include <memory>

#include "tessera/device/cpu/pool.h"
#include "tessera/device/device.h"

namespace tessera::cpu {

using MakeKernel = std::function<std::unique_ptr<Kernel>(const KernelRequest&)>;

/// The kernel that `make` gives for the call in f32, between copies of what has 16 bits: each
/// result is computed in f32 and rounded once. It runs block by block (blocks.h), so that the
/// copies stay in cache: those of a block need about `block_bytes`.
std::unique_ptr<Kernel> make_widened(const KernelRequest& request, Pool& pool,
                                     const MakeKernel& make, std::int64_t block_bytes);

}  // namespace tessera::cpu
