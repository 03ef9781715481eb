#include "tessera/train/memory_price.h"

#include <algorithm>

#include "tessera/plan/price.h"
#include "tessera/train/host_pool.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

constexpr std::int64_t kActionsPerCall = 60;  // that compile in the time of a call

}  // namespace

MemoryPrice memory_price(const RunConfig& config, Device& device) {
  RunConfig quiet = config;
  quiet.dump_dir.clear();
  const RunSetup setup(std::move(quiet));
  WantedPrograms wanted = wanted_programs(setup);
  wanted.stages = true;
  const Compiled compiled = compile_programs(setup, wanted, device);
  MemoryPrice out;
  for (const Plan* plan : plans_of(compiled)) {
    const ProgramPlan& train = plan->program(kTrainProgram);
    std::int64_t batch = 0;
    for (const NamedTensor& each : train.batch) batch += each.type.bytes();
    out.batch_bytes = std::max(out.batch_bytes, batch);
    out.peak_bytes = std::max(out.peak_bytes, plan->peak_bytes());
    out.host_bytes = std::max(out.host_bytes, plan->host_bytes());
    out.capped_bytes = std::max(out.capped_bytes, capped_bytes(config, *plan));
    out.seconds = std::max(out.seconds, step_seconds(train, plan->mesh, config.parallel.machine));
    for (const ProgramPlan& program : plan->programs) {
      for (const RegionPlan& region : program.regions)
        out.work += static_cast<std::int64_t>(region.calls.size());
      out.work += static_cast<std::int64_t>(program.actions.size()) / kActionsPerCall;
    }
  }
  return out;
}

}  // namespace tessera
