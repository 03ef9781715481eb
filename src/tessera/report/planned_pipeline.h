#pragma once
/// The pipeline of a run, with what its plans say of it.

#include <optional>
#include <string>

#include "tessera/report/pipeline_report.h"
#include "tessera/report/schedule_svg.h"
#include "tessera/train/programs.h"

namespace tessera {

struct PlannedPipeline {
  std::string schedule;
  Pipeline pipeline;
  PipelineFacts facts;  // prices in seconds

  PipelineReport report() const { return report_of(schedule, pipeline, facts); }
  std::string svg() const {
    return schedule_svg(schedule, pipeline, facts.prices, TimeUnit::Seconds);
  }
};

/// None where the run has one stage. `compiled` has the plans of all stages, for `config`.
std::optional<PlannedPipeline> planned_pipeline(const Compiled& compiled, const RunSetup& setup);

}  // namespace tessera
