#pragma once
/// Buckets: several values in one buffer, so that ranks sum them in one all_reduce. Inserted by
/// passes/bucket; models do not call it.

#include "tessera/ir/builder.h"

namespace tessera {

/// The elements of all operands, one operand after another. Result: one dim. The planner has
/// operands computed at their places in the result (OpDef::part), so most calls have nothing to do.
extern const OpDef kBucket;

}  // namespace tessera
