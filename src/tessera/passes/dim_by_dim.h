#pragma once
/// Redistribution as MindSpore's compiler infers it, to be compared with the cheapest one.

#include <optional>

#include "tessera/passes/redistribute.h"

namespace tessera {

/// Who plans redistributions.
enum class MoveStyle : std::uint8_t {
  Least,             // Redistributor: the cheapest path of moves
  DimByDim,          // as MindSpore by default: what is to be cut along another dim is gathered
  DimByDimAllToAll,  // as MindSpore with enable_alltoall: it is exchanged
};

/// Sums are reduced whole first. Then, on the split view, in rounds until every axis is in its
/// place: cut what no other dim is cut by; where the wanted axis cuts another dim, exchange (or
/// gather and cut) it; gather what is not wanted. If a round moves nothing, axes have to change
/// places, and the first dim is gathered. Cuts that have no common borders are gathered whole.
///
/// None for MoveStyle::Least; and for shards of unequal sizes, axes of time that would have to
/// move, and too many cuts for a view, which MindSpore does not have or refuses.
std::optional<Redistribution> plan_dim_by_dim(MoveStyle style, const Mesh& mesh, const Shape& shape,
                                              DType dtype, const Sharding& from,
                                              const Sharding& to);

}  // namespace tessera
