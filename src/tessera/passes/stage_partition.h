#pragma once
/// Partition of one graph for several stages of its pipeline.

#include "tessera/passes/node_regions.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/redistribute.h"

namespace tessera {

/// partition(), stage by stage: what is the same for all stages, regions and moves, is found once.
class StagePartition {
 public:
  /// `placed` and `pipeline` outlive it. Errors: as partition.
  StagePartition(const Graph& placed, const Pipeline& pipeline, const Machine& machine);
  Program stage(int stage);

 private:
  const Graph& placed_;
  const Pipeline& pipeline_;
  NodeRegions regions_;
  Redistributor redistributor_;
};

}  // namespace tessera
