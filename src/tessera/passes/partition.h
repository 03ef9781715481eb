#pragma once
/// Partition: makes the graphs, one per region, that every rank runs on its own shards.

#include "tessera/passes/program.h"
#include "tessera/schedule/pipeline.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// Nodes with a result that is split or partial along the micro-batch axis are in the loop: Forward
/// or Backward by their phase. Other nodes that the loop depends on are in Begin, all the rest in
/// Update, and so is a sum of what several regions of the loop add up. Without micro-batches, the
/// region of a node is its phase.
///
/// In:      Form::Placed.
/// Out:     regions with graphs in Form::Local, some of them empty. A value of an earlier region is
///          read as a slot, which that region has as output; a value partial on the micro-batch
///          axis leaves as Output::Accumulate. Batch inputs are whole: time nodes take their rows
///          by `shard`.
/// Memory:  a reshard or use whose operand lies in another memory is moves and a copy, with the
///          moves on the device: the copy comes last to the host, first from it.
/// Padding: an op that reduces a dim finds the reduction's identity beyond the logical extent,
///          written by `clear_padding`; states are stored with zeros there. Other padding is
///          undefined.
/// Errors:  a node before the first micro-batch that reads a result of one ("needs a sum over mb").
///
/// With a pipeline: what one stage runs. Nodes belong to chunks (place_chunks.h). A value of
/// another stage is received, by the first region of this stage that can have it; see NodeRegions.
Program partition(const Graph& placed, const Machine& machine = {});
Program partition(const Graph& placed, const Pipeline& pipeline, int stage,
                  const Machine& machine = {});

}  // namespace tessera
