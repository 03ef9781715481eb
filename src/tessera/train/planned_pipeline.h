#pragma once
/// The pipeline of a run, with what its plan says of it.

#include <optional>
#include <string>

#include "tessera/train/pipeline_report.h"
#include "tessera/train/programs.h"
#include "tessera/train/schedule_svg.h"

namespace tessera {

struct PlannedPipeline {
  std::string schedule;
  Pipeline pipeline;
  PipelineFacts facts;
  TimeUnit unit = TimeUnit::Units;  // of facts.prices

  PipelineReport report() const { return report_of(schedule, pipeline, facts); }
  std::string svg() const { return schedule_svg(schedule, pipeline, facts.prices, unit); }
};

/// None where the run has one stage. `config` is complete and has a vocabulary size.
std::optional<PlannedPipeline> planned_pipeline(const RunConfig& config);

}  // namespace tessera
