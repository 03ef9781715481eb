#pragma once
/// The makers of the vector kernels, one per file; each returns null where it does not accept the
/// case.

#include "tessera/device/cpu/kernels.h"

namespace tessera::cpu {

std::unique_ptr<Kernel> make_elementwise(const KernelRequest& request,
                                         Pool& pool);  // fused, add_n, broadcast too
std::unique_ptr<Kernel> make_dropout(const KernelRequest& request, Pool& pool);

}  // namespace tessera::cpu
