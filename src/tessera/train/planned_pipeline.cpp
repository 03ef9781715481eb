#include "tessera/train/planned_pipeline.h"

#include "tessera/passes/merge_pads.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/simplify.h"
#include "tessera/train/step.h"

namespace tessera {

std::optional<PlannedPipeline> planned_pipeline(const RunConfig& config) {
  const PipelineStrategy strategy = strategy_of(config.parallel).pipeline;
  if (strategy.stages == 1) return {};
  PlannedPipeline out{strategy.schedule,
                      Pipeline(make_schedule(strategy.schedule, {strategy.stages, strategy.chunks,
                                                                 config.micro_batches()})),
                      {}};
  // As compile() cuts it.
  const Graph step =
      train_step(config.model, config.optimizer, config.global_batch_size, config.model.context);
  out.facts.cut = cut_into_chunks(simplify(merge_pads(step)), strategy);
  return out;
}

}  // namespace tessera
