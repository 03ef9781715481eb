#include "tessera/report/planned_pipeline.h"

#include "tessera/plan/predict.h"

namespace tessera {

std::optional<PlannedPipeline> planned_pipeline(const Compiled& compiled, const RunConfig& config) {
  const PipelineStrategy strategy =
      strategy_of(config.parallel, BatchSplit::Cut, config.model).pipeline;
  if (strategy.stages == 1) return {};
  PlannedPipeline out{strategy.schedule, pipeline_of(plans_of(compiled), kTrainProgram), {}};
  out.facts.prices =
      prices_of(plans_of(compiled), kTrainProgram, out.pipeline, config.parallel.machine);
  out.facts.cut = compiled.plan.cut;
  for (const Plan* plan : plans_of(compiled))
    out.facts.stages.push_back(stage_facts_of(*plan, config));
  return out;
}

}  // namespace tessera
