#pragma once
/// Computes what Update makes of a gradient where Backward makes the gradient.

#include "tessera/passes/program.h"

namespace tessera {

/// A single number that Update makes of one value that Backward computes, as the sum of squares of
/// a gradient for its norm, is computed right behind that value, which is in the caches of a device
/// then. Update reads the number as a slot.
///
/// A value that comes from a transfer stays as it is: whoever reads it waits for the transfer. So
/// do all where regions of the loop run for several micro-batches: there gradients are sums.
///
/// In, out: regions in Form::Local.
Program advance(Program program);

}  // namespace tessera
