#include "tessera/train/run_summary.h"

#include "tessera/models/parallel.h"
#include "tessera/plan/kernel_use.h"
#include "tessera/train/free_memory.h"
#include "tessera/train/rank_shares.h"

namespace tessera {

RunStart run_start(const RunSetup& setup, const Compiled& compiled, const RunRequirements& facts) {
  const RunConfig& config = setup.config;
  const Plan& plan = compiled.plan;
  RunStart out;
  out.steps = config.steps;
  out.parameters = count_parameters(plan);
  out.tokens_per_step = setup.tokens_per_step();
  out.peak_bytes = facts.peak_bytes;
  out.host = host_use(config, facts.host_bytes);
  out.base_bytes = plan.base_keys() < plan.ranks() ? plan.base_bytes : 0;
  out.main_memory_bytes = main_memory_bytes(config, plan) * plan.ranks() -
                          plan.base_bytes * (plan.ranks() - plan.base_keys());
  out.save_copy_bytes = save_copy_bytes(config, plan);
  out.flops_per_step = facts.flops;
  out.recomputed_flops_per_step = facts.recomputed_flops;
  out.compile_seconds = compiled.seconds;
  out.devices = plan.ranks();
  out.kernels = main_kernels(plan.program(kTrainProgram));
  return out;
}

void add_plan(Summary& out, const RunSetup& setup, const Plan& plan, const RunRequirements& facts) {
  const RunConfig& config = setup.config;
  out.flops_per_step = facts.flops;
  out.recomputed_flops_per_step = facts.recomputed_flops;
  out.parameters = count_parameters(plan);
  out.choice = memory_choice_of(config);
  out.planned_peak_bytes = facts.peak_bytes;
  out.planned_host = host_use(config, facts.host_bytes);
  out.lower_bound_bytes = facts.lower_bound_bytes;
  out.save_copy_bytes = save_copy_bytes(config, plan);
  out.sent = facts.sent;
  out.memory = plan.program(kTrainProgram).memory;
  out.devices = plan.ranks();
  if (plan.ranks() > 1) out.mesh = mesh_text(setup.cut);
}

}  // namespace tessera
