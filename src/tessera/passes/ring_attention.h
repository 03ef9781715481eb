#pragma once
/// Ring attention: keys and values that ranks hold in parts are never joined; they travel.

#include "tessera/ir/key_exchange.h"
#include "tessera/passes/program.h"

namespace tessera {

/// Which rings are balanced.
struct RingLimits {
  std::int64_t least_half = kLeastHalfBlock;
};

/// Attention whose queries are cut along a mesh axis, of keys and values that are gathered along
/// it, is computed block by block instead. In step i of a ring of n ranks, rank r has the keys and
/// values of rank r - i, while those of rank r - i - 1 are on their way from its neighbour; what it
/// computes of them is merged with what it had (merge_attention), from its own block on backwards.
/// A rank holds two blocks of keys and values instead of n. In the gradient, the gradients of a
/// block's keys and values travel with it, as sums in f32, and at last home.
///
///   all_gather k, all_gather v, attention            2 blocks in n - 1 steps, and merges
///   ... attention_grad, 2 reduce_scatter             2 blocks in n - 1 steps, 2 sums in n steps
///
/// Steps whose block no query sees, because of a window, are left out. Without one, in causal
/// attention, rank 0 would see one block and the last rank all n. There ranks change to a zigzag
/// before: each has an early and a late half block (Half::Even, Half::Odd), and in each step half
/// of what its queries could see. Results change back.
///
/// Where a key lies is told by its placement, along an axis that is turned (axis_part).
///
/// Gathers stay where something else reads them, where the axis cuts keys unevenly or is one of
/// several, and where queries are not cut alike.
///
/// In, out: regions in Form::Local, as partition makes them.
Program ring_attention(Program program, const RingLimits& limits = {});

}  // namespace tessera
