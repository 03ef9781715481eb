#pragma once
/// Overlap of communication, copies and computation: when each transfer starts and ends.

#include "tessera/plan/timeline.h"

namespace tessera {

/// Each transfer starts as soon as its operand exists, and ends before the first node that reads
/// its result (or with the region, if none does; at once, if another stage does). Other nodes run
/// in between. To bound the memory that this takes:
///
///   the result replaces its operand        no more memory is held: it may take the whole time
///   the result is larger (all_gather)      begins one ahead
///   the result is smaller (reduce_scatter) ends one behind
///   both have one size                     it starts at its node; a permute ends before the first
///                                          node that reads its result, any other at once
///   a copy that this region reads          begins one ahead, among those to the same memory
///   a copy that it does not read           ends one behind, among those to the same memory
///
/// A transfer by ids does not start before these are there.
///
/// Permutes end in the order in which they start, as messages between two ranks do, and few are
/// under way at a time.
/// One ahead: it does not start before the one ends whose result is read before its own. Those
/// whose results are first read by one node start together.
/// One behind: it ends at the latest when the next one starts. Those that start together, as their
/// operands are of one node, end together.
///
/// An accumulator that is summed over ranks in place starts in the last micro-batch, after the node
/// that completes it; a bucket of several after the last of these. Other transfers of accumulators
/// start after the loop, and so do all of them where the regions of the last micro-batch do not run
/// in the order of the program.
///
/// In:      regions in Form::Local, ready to be lowered.
Timeline overlap(const Program& program);

}  // namespace tessera
