#pragma once
/// Which operands the CPU's kernels read at strides.

#include "tessera/ir/op_def.h"

namespace tessera::cpu {

/// As Device::accepts_strides, whatever the instruction set.
bool accepts_strides(const OpDef& op, int operand);

}  // namespace tessera::cpu
