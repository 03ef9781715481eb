#pragma once
/// Writes a part of a tensor where the tensor lies.

#include "tessera/ir/builder.h"

namespace tessera {

/// `x` with elements [start, start + n) of `dim` replaced by `update`, which has n of them. As the
/// next value of state x, it is written where the state lies: only the window's bytes are touched.
///
/// Shapes: x any; update as x but for `dim`, where it is not longer; start: an i32 scalar, clamped
///         as by dynamic_slice so that the window fits. Returns the type of x.
/// Errors: other dtypes or shapes; start is no i32 scalar.
Value dynamic_update(Value x, Value update, int dim, Value start, Where where = Where::here());

extern const OpDef kDynamicUpdate;

}  // namespace tessera
