#pragma once
/// What a run will cost, without running it: what `tessera plan` prints.

#include <string>

#include "tessera/train/programs.h"

namespace tessera {

struct PlanReport {
  std::int64_t parameters = 0;
  MemoryUse memory;  // of the training step, in bytes
  std::int64_t peak_bytes = 0, lower_bound_bytes = 0, state_bytes = 0, work_bytes = 0;
  std::int64_t save_copy_bytes = 0;  // beside the arena
  double flops_per_step = 0;
  std::int64_t tokens_per_step = 0, micro_batches = 1;
  std::vector<PassTime> passes;
  double compile_seconds = 0;
};

PlanReport report_of(const Compiled& compiled, const RunConfig& config);

/// A table for people.
std::string to_text(const PlanReport& report);
/// One object, all sizes in bytes and times in seconds; docs/metrics.md has its keys.
std::string to_json(const PlanReport& report);

}  // namespace tessera
