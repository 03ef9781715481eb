#pragma once
/// Plans of a training step on a mesh, for tests of what such plans hold.

#include "tessera/models/parallel.h"
#include "tessera/plan/compile.h"
#include "tessera/train/programs.h"
#include "tessera/train/step.h"

namespace tessera {

/// Data parallel at a level of ZeRO.
inline ParallelConfig zero(std::int64_t ranks, int level, std::int64_t micro_batches = 1) {
  return {.devices = ranks,
          .shard_optimizer = level > 0,
          .shard_gradients = level > 1,
          .shard_parameters = level > 2,
          .micro_batches = micro_batches};
}

/// The programs "init" and "train". Kernels of the plan belong to the device.
inline Plan step_plan(const ModelConfig& model, std::int64_t batch, const ParallelConfig& parallel,
                      Device& device, const CompileOptions& options = {}) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const Graph step = train_step(model, optimizer, batch, model.context);
  ParallelConfig once = parallel;
  once.micro_batches = 1;
  return compile({{kInitProgram, initialise(step), strategy_of(once, BatchSplit::Whole, model)},
                  {kTrainProgram, step, strategy_of(parallel, BatchSplit::Cut, model)}},
                 device, options);
}

}  // namespace tessera
