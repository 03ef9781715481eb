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
/// A sum over micro-batches that is finished in place starts in the last of them, behind the node
/// that completes it; others start after the loop, to whose end the sum lives in any case.
///
/// In:      four regions in Form::Local, ready to be lowered.
Timeline overlap(const std::vector<Region>& regions);

}  // namespace tessera
