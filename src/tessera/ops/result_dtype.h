#pragma once
/// Sums of 16-bit floats whose result is asked for in f32: it is not rounded.

#include "tessera/ir/op_def.h"

namespace tessera {

/// The attribute of ops that add up: the dtype of the result, where it is not the operands'.
inline constexpr AttrDef kResultDType = {
    .name = "dtype", .kind = AttrKind::DType, .optional = true};

/// The dtype of the result of sums over numbers of dtype `own`. Errors: one that is asked for, but
/// is neither `own` nor what `own` is computed in.
inline DType result_dtype(const OpCall& call, DType own) {
  const DType out = call.dtype_or(kResultDType.name, own);
  require(out == own || out == computed_in(own), call.op().name, ": operands are ", own,
          ", the result is asked for in ", out, "; it can be ", own, " or ", computed_in(own));
  return out;
}

}  // namespace tessera
