#include "tessera/planner/plan_speed.h"

#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/train/run_requirements.h"

namespace tessera {

PlanSpeed speed_of(const PlanAnswer& answer, const PlanQuestion& question) {
  const RunConfig& config = answer.config;
  const RunSetup setup(config);
  const double seconds = answer.best().seconds();
  PlanSpeed out;
  out.samples_per_s = static_cast<double>(config.global_batch_size) / seconds;
  out.tokens_per_s = out.samples_per_s * static_cast<double>(setup.task().tokens);
  if (question.machine.name.empty()) return out;  // its rates are round figures
  const DType floats = setup.precision ? setup.precision->compute : DType::F32;
  out.peak_flops_per_s = 1e9 * question.machine.device.of(floats).gigaflops_per_s;
  double flops = 0;  // of a rank of each stage
  const std::vector<const Plan*> stages = plans_of(*answer.compiled);
  for (const Plan* plan : stages) flops += requirements_of(*plan).model_flops();
  out.mfu = flops / static_cast<double>(stages.size()) / seconds / out.peak_flops_per_s;
  return out;
}

std::string known_error_text(const PlanQuestion& question) {
  const Machine& machine = question.machine;
  return text("known error of these times: ",
              !machine.known_error.empty() ? machine.known_error
              : machine.name.empty()
                  ? "unknown, as this machine was not measured (tessera doctor --calibrate)"
                  : text("unknown, as no run on ", machine.name, " was compared with them"));
}

}  // namespace tessera
