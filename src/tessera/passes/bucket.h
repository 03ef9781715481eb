#pragma once
/// Buckets: sums of gradients over ranks in few all_reduces, instead of one for each parameter.

#include "tessera/ir/strategy.h"
#include "tessera/passes/program.h"

namespace tessera {

/// Joins all_reduces in which gradients of parameters end. The operands of several become one value
/// (op `bucket`), which one all_reduce sums; readers get slices of the sum. Joined are those of one
/// region that sum along the same axes, by the same monoid and in the same dtype, none of which
/// depends on another: by the groups of the strategy, and all others in the order in which they are
/// ready, until a bucket would exceed its bytes. A gradient that is alone stays as it is.
///
/// Each element is summed over the same ranks in the same order as without buckets: the same bits.
/// Nothing is copied where lowering can have operands computed at their places (OpDef::part).
///
/// In, out: regions in Form::Local, as partition makes them.
Program bucket(Program program, const BucketStrategy& strategy);

}  // namespace tessera
