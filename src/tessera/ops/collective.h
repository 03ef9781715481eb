#pragma once
/// Ops that change the placement of a value. They are inserted by passes; models do not call them.
/// Which ranks take part, and who holds what, follows from the placements of operand and result.

#include <optional>
#include <vector>

#include "tessera/ir/builder.h"

namespace tessera {

/// Placed graphs: the same value in another placement. Partition makes collectives of it.
extern const OpDef kReshard;
/// A state, by its path, as forward or backward reads it: in a placed graph in another placement
/// than it is stored in, and partition makes collectives of it. The update reads the state itself.
extern const OpDef kUse;
inline bool reshards(const OpDef& op) { return &op == &kReshard || &op == &kUse; }

// Local graphs. `axes` are joined by dots, major first: "cp.tp". `shape` is the local result.
/// This rank's (or micro-batch's) part of a dim of a value that is whole along the axes.
extern const OpDef kShard;
/// The value on the first rank of the axis, the monoid's identity on the others.
extern const OpDef kMarkPartial;
/// The value in another memory, that of the result's placement: there is no kernel, the device
/// copies beside the kernels that run meanwhile.
extern const OpDef kCopy;
extern const OpDef kAllReduce;      // partial -> whole
extern const OpDef kAllGather;      // shards of a dim -> whole
extern const OpDef kReduceScatter;  // partial -> shards of a dim
extern const OpDef kAllToAll;       // shards of dim `from` -> shards of dim `to`
/// As all_gather and reduce_scatter, of dim 0, for ranks that have some groups of rows each: x, ids
/// [..., k] of i32, whose leading dims are the first ones of the larger side. Ids from i x per_rank
/// on, per_rank of them, are rank i's; only rows with an id of the receiver, or of the sender of a
/// part of a sum, are sent. Ids are the same on all of the ranks.
extern const OpDef kDispatch;  // shards of rows -> those with this rank's ids, zeros, and its own
extern const OpDef kCombine;   // sums, to which ranks add where they have an id -> shards
extern const OpDef kPermute;   // each rank takes the shard of one other
/// A padded shard with a reduction's identity beyond the logical extent in `dims`.
extern const OpDef kClearPadding;

/// The rule of ops that are inserted when placements have been decided: no dim may be split.
Factors no_factors(const OpCall& c);

/// Where a value of a placed or local graph lies.
inline Memory memory_of(const Result& result) {
  return result.placement ? result.placement->memory : Memory::Device;
}

/// True where a call of it is started, and waited for later.
inline bool is_transfer(const OpDef& op) { return op.traits.exchanges || &op == &kCopy; }

/// The reduction over a dim of `padded` by which the op reads this operand: its identity must lie
/// beyond the logical extent. Kernels rely on that, and partition sees to it. Nothing where the op
/// reduces none of these dims, or finds elements by index.
std::optional<Monoid> reduction_of_padding(const OpDef& op, const Factors& rule, int operand,
                                           const std::vector<std::int64_t>& padded);
/// The dims in which shards of a value of a local graph have padding.
std::vector<std::int64_t> padded_dims(const Result& result, const Mesh& mesh);

}  // namespace tessera
