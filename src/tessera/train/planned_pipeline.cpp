#include "tessera/train/planned_pipeline.h"

#include "tessera/plan/price.h"

namespace tessera {

std::optional<PlannedPipeline> planned_pipeline(const Compiled& compiled, const RunConfig& config) {
  const PipelineStrategy strategy = strategy_of(config.parallel).pipeline;
  if (strategy.stages == 1) return {};
  std::vector<const ProgramPlan*> stages;
  for (const Plan* plan : plans_of(compiled)) stages.push_back(&plan->program(kTrainProgram));
  std::vector<Edge> edges;
  for (const EdgeBytes& each : stages[0]->edges) edges.push_back(each.edge);
  const Schedule schedule =
      make_schedule(strategy.schedule, {strategy.stages, strategy.chunks, stages[0]->microbatches});
  PlannedPipeline out{strategy.schedule, Pipeline(schedule, skips_of(edges)), {}};
  out.facts.prices = prices_of(stages, out.pipeline, compiled.plan.mesh);
  out.facts.cut = compiled.plan.cut;
  for (const Plan* plan : plans_of(compiled)) out.facts.stages.push_back(stage_facts_of(*plan));
  return out;
}

}  // namespace tessera
