#pragma once
/// The part of `tessera plan` about the pipeline: what each stage has, in which order it works, and
/// how much of a step it waits.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/strategy.h"
#include "tessera/schedule/pipeline.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/run_requirements.h"

namespace tessera {

/// Of a rank of a stage.
struct StageFacts {
  RunRequirements rank;
  std::int64_t state_bytes = 0;
  MemoryUse memory;  // of the training step
  HostUse host;
};
StageFacts stage_facts_of(const Plan& plan, const RunConfig& config);

struct StageReport {
  std::vector<int> chunks;                       // numbered through the model
  std::vector<std::vector<std::string>> blocks;  // of each of them, where they are known
  std::int64_t in_flight = 0;  // most results of forwards at once, each from F to its last reader
  StageFacts facts;            // where they are known: its arena has bytes
  std::vector<std::string> actions;  // in order: "F0.0", "BW0.0", ...
};

struct PipelineReport {
  std::string schedule;
  std::int64_t micro_batches = 1;
  /// Share of a step in which stages wait. Ideal: every F, B and W of a chunk takes one unit of
  /// time (BW two), and sends none.
  double bubble_ideal = 0, bubble = 0;
  bool priced = false;
  double makespan = 0;  // from the first action of any stage to the last of any, as priced
  std::vector<StageReport> stages;
};

struct PipelineFacts {
  PlayOptions prices;         // what actions and sends take, and when they can begin
  std::vector<ChunkPin> cut;  // as Plan has it
  std::vector<StageFacts> stages;
};

/// `schedule` is the name of the pipeline's. Facts that are left out are not reported; without
/// prices the bubble is the ideal one.
PipelineReport report_of(const std::string& schedule, const Pipeline& pipeline,
                         const PipelineFacts& facts = {});

/// "1f1b: 2 stages, 1 chunk on each, 8 micro-batches"
std::string headline(const PipelineReport& report);
/// A line that says what to do where micro-batches are fewer than stages; else empty.
std::string starved_text(const PipelineReport& report);
/// A table for people.
std::string to_text(const PipelineReport& report);

/// "embed, layers.0 ... layers.3, head": runs of numbered blocks are told by their ends.
std::string blocks_text(const std::vector<std::string>& blocks);

}  // namespace tessera
