#pragma once
/// What no layout of a pipeline takes less than.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/planner/short_model.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// What bounds know of the pipeline of a choice.
struct PipelineShape {
  std::int64_t stages = 1, chunks = 1;  // chunks: of each stage, at least
  std::int64_t last = 0;                // the stage that has the last chunk; below 0: not known
  bool splits = false;                  // Backward and Weights are apart, or may be
  /// Most actions of a chunk on a stage once one of its chunks has passed all micro-batches: only
  /// from there on what they begin to sum goes on. By region: forward, backward, weights.
  std::array<std::int64_t, 3> tail = {};
  std::int64_t ranks = 1;  // of a stage
};

/// Of a choice whose parts take what `use` says, in so many micro-batches, with any layout and any
/// memory. It is the least T that the following admits, with layers given to stages as whole
/// numbers, the first stages as many as they can take: stage s begins when the stages before it
/// have passed the first micro-batch on; it works as long as its parts say; then the last
/// gradients go back, unless the schedule has them do so before its last action; or what its last
/// micro-batch begins to sum ends. Begin and update of the stage that has most come on top.
///
/// `stacks`: layers of each. Where parts of a stage differ by stack the cheapest counts.
/// `sums`: kDataLast does not come at the end; this share of it comes in every micro-batch.
double least_seconds(const ModelUse& use, const PipelineShape& shape,
                     const std::vector<std::int64_t>& stacks, std::int64_t micro_batches,
                     const Machine& machine, double sums = 0);

/// Of stages that follow a schedule: of so many micro-batches.
PipelineShape shape_of(const std::string& schedule, std::int64_t stages, std::int64_t chunks,
                       std::int64_t micro_batches);

/// Each number as in the one of the two whose layers take less.
ModelUse least_of(const ModelUse& a, const ModelUse& b);

}  // namespace tessera
