#pragma once
/// Overlap of communication, copies and computation: when each transfer starts and ends.

#include "tessera/plan/timeline.h"

namespace tessera {

/// Each transfer starts as soon as its operand exists, and ends before the first node that reads
/// its result (or with the region, if none does; at once, if another stage does). Other nodes run
/// in between. To bound the memory that this takes:
///
///   the result replaces its operand        no more memory is held: it may take the whole time
///   the result is larger (all_gather)      at most one is started ahead: when the one before ends
///   the result is smaller (reduce_scatter) at most one ends late: when the next one starts
///   both have one size                     it starts and ends at its node
///   a copy from the host                   as what is larger, among such copies
///   a copy to the host                     as what is smaller, among such copies
///
/// An accumulator that is summed over ranks in place starts in the last micro-batch, after the node
/// that completes it. Other transfers of accumulators start after the loop, and so do all of them
/// where the regions of the last micro-batch do not run in the order of the program.
///
/// In:      regions in Form::Local, ready to be lowered.
Timeline overlap(const Program& program);

}  // namespace tessera
