#pragma once
/// Cuts a placed graph into the programs that every rank runs on its own shards, one per region.

#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/moves.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Begin runs before the first micro-batch, Forward and Backward once for each, Update after the
/// last.
enum class RegionKind : std::uint8_t { Begin, Forward, Backward, Update };
std::string_view to_text(RegionKind kind);
/// True of the regions that every micro-batch runs.
constexpr bool in_loop(RegionKind kind) {
  return kind == RegionKind::Forward || kind == RegionKind::Backward;
}

struct Region {
  RegionKind kind = RegionKind::Forward;
  Graph graph;
};

/// Region follows from placement. A node is a time node if the micro-batch axis shards or
/// accumulates it: Forward or Backward by its phase. Its other ancestors are Begin, all other nodes
/// Update. Without micro-batches, region = phase.
///
/// In:      Form::Placed.
/// Out:     four graphs in Form::Local, in the order of RegionKind, some of them empty. A value of
/// an earlier region is
///          read as a slot, which that region has as output; a value partial on the
///          micro-batch axis leaves as Output::Accumulate. Batch inputs are whole: time nodes take
///          their rows by `shard`.
/// Errors:  a node before the first micro-batch that reads a result of one ("needs a sum over mb").
std::vector<Region> partition(const Graph& placed, const Machine& machine = {},
                              MoveStyle style = MoveStyle::Least);

}  // namespace tessera
