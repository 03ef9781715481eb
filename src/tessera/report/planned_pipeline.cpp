#include "tessera/report/planned_pipeline.h"

#include "tessera/plan/predict.h"

namespace tessera {

std::optional<PlannedPipeline> planned_pipeline(const Compiled& compiled, const RunSetup& setup) {
  const PipelineStrategy& strategy = setup.cut.pipeline;
  if (strategy.stages == 1) return {};
  PlannedPipeline out{strategy.schedule, pipeline_of(plans_of(compiled), kTrainProgram), {}};
  out.facts.prices =
      prices_of(plans_of(compiled), kTrainProgram, out.pipeline, setup.compile.machine);
  out.facts.cut = compiled.plan.cut;
  for (const Plan* plan : plans_of(compiled))
    out.facts.stages.push_back(stage_facts_of(*plan, setup.config));
  return out;
}

}  // namespace tessera
