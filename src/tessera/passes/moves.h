#pragma once
/// The moves of a redistribution as nodes of a local graph.

#include "tessera/ir/builder.h"
#include "tessera/passes/redistribute.h"

namespace tessera {

/// Which collectives moves become.
enum class MoveStyle : std::uint8_t {
  Least,      // those that move the fewest bytes
  MindSpore,  // as MindSpore's compiler has it: sums are reduced whole and then cut, and what is to
              // be cut along another dim is gathered first
};

/// Adds the nodes that bring `value`, whose local form is in the builder, to the sharding to which
/// the moves lead. `like` gives block, phase, stage and place in the source.
///
/// Uneven: a collective joins or cuts chunks of one size, so axes that nest unevenly on a dim are
/// taken one after another, the minor first where shards are joined, the major first where they are
/// cut.
Value add_moves(Builder& builder, Value value, const std::vector<Move>& moves, const Node& like,
                MoveStyle style = MoveStyle::Least);

}  // namespace tessera
