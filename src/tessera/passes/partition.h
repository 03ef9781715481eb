#pragma once
/// Partition: makes the graphs, one per region, that every rank runs on its own shards.

#include <string_view>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/passes/moves.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// The parts of a step. Begin runs once, before the first micro-batch; Forward and Backward once
/// per micro-batch; Update once, after the last.
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

/// How micro-batches combine in a value that leaves as Output::Accumulate: by the reduction that
/// its placement leaves unfinished. Errors: it leaves none unfinished.
Monoid reduction_over_time(const Result& result);

/// Nodes with a result that is split or partial along the micro-batch axis are in the loop: Forward
/// or Backward by their phase. Other nodes that the loop depends on are in Begin, all the rest in
/// Update. Without micro-batches, the region of a node is its phase.
///
/// In:      Form::Placed.
/// Out:     four graphs in Form::Local, in the order of RegionKind, some of them empty. A value of
/// an earlier region is
///          read as a slot, which that region has as output; a value partial on the
///          micro-batch axis leaves as Output::Accumulate. Batch inputs are whole: time nodes take
///          their rows by `shard`.
/// Padding: an op that reduces a dim finds the reduction's identity beyond the logical extent,
/// written by `clear_padding`; states are stored with zeros there. Other padding is undefined.
/// Errors:  a node before the first micro-batch that reads a result of one ("needs a sum over mb").
std::vector<Region> partition(const Graph& placed, const Machine& machine = {},
                              MoveStyle style = MoveStyle::Least);

}  // namespace tessera
