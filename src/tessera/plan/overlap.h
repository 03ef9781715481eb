#pragma once
/// Overlap: transfers are under way while other nodes run.

#include <vector>

#include "tessera/plan/timeline.h"

namespace tessera {

/// Each transfer starts when its operand is there and ends before the first node that reads its
/// result, or with the region where none does: ranks that come at different times meet in between
/// without waiting, and a device that moves bytes beside its kernels hides them. So that little
/// memory is held for it:
///
///   the result takes the operand's place   nothing is held: the whole time
///   the result is larger (all_gather)      it starts one ahead: where the gathers before it end
///   the result is smaller (reduce_scatter) it ends one behind: where the next one starts
///   both are of one size                   it starts and ends at its node
///
/// What the micro-batches summed up starts in the last one, behind the node that ends the sum.
///
/// In:      four regions in Form::Local, ready to be lowered.
Timeline overlap(const std::vector<Region>& regions);

}  // namespace tessera
