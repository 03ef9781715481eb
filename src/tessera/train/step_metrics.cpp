#include "tessera/train/step_metrics.h"

#include "tessera/train/step.h"

namespace tessera {

void read_metrics(const Engine& engine, std::string_view program, const Task& task,
                  const OptimizerConfig& optimizer, StepRecord& record) {
  const auto metric = [&](std::string_view name) { return engine.scalar(program, name); };
  record.loss = metric("loss");
  record.lr = metric("lr");
  record.grad_norm = metric("grad_norm");
  record.ok = metric("ok") != 0;
  if (optimizer.loss_scale.on) record.loss_scale = metric("loss_scale");
  for (const TaskMean& mean : task.means) {
    if (mean.name != kLossMean) record.means.emplace_back(mean.name, metric(mean.name));
  }
  for (std::int64_t i = 0; i < task.routers; ++i) {
    const HostTensor counts = engine.metric(program, router_metric(i));
    std::vector<double>& of_router = record.tokens_per_expert.emplace_back();
    for (std::int64_t e = 0; e < counts.numel(); ++e) of_router.push_back(counts.at(e));
  }
}

}  // namespace tessera
