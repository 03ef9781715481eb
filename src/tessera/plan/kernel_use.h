#pragma once
/// Which kernels a program runs, and how much they do.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/plan/plan.h"

namespace tessera {

/// What a kernel does in a training step on a device: all calls of one op by it.
struct KernelUse {
  std::string op, kernel;
  std::int64_t calls = 0;
  double flops = 0, bytes = 0;  // read and written, each operand and result once per call
};

/// Most FLOPs first, then most bytes.
std::vector<KernelUse> kernels_of(const ProgramPlan& program);

/// The names of those that do more than a hundredth of a program's FLOPs; the first does most.
std::vector<std::string> main_kernels(const ProgramPlan& program);

}  // namespace tessera
