#pragma once
/// The kernel list of the CPU: per op the makers in order of preference. A maker returns null where it does not accept.

#include <memory>
#include <span>

#include "tessera/device/cpu/pool.h"
#include "tessera/device/device.h"

namespace tessera::cpu {

using KernelMaker = std::unique_ptr<Kernel> (*)(const KernelRequest&, Pool&);

struct KernelEntry {
  const OpDef* op;
  KernelMaker make;
};

/// All entries, in order of preference within an op; cpu/kernels.cpp lists the families.
std::span<const KernelEntry> kernel_list();

/// The reference kernel on one thread: accepts everything.
std::unique_ptr<Kernel> make_reference_kernel(const KernelRequest& request);

}  // namespace tessera::cpu
