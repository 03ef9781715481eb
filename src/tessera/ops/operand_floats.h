#pragma once
/// The floats that a call computes in.

#include "tessera/ir/op_def.h"

namespace tessera {

/// Those of its first operand that has any: ids and masks may come before it. Without one, the
/// dtype of the first operand.
inline DType operand_floats(const OpCall& call) {
  for (int i = 0; i < call.num_in(); ++i)
    if (is_float(call.in(i).dtype)) return call.in(i).dtype;
  return call.num_in() > 0 ? call.in(0).dtype : DType::F32;
}

}  // namespace tessera
