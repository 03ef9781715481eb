#include "tessera/train/step_metrics.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/train/step.h"

namespace tessera {

namespace {

/// What the busiest expert of all layers has, as a multiple of the mean of its layer.
double largest_load(const std::vector<std::vector<double>>& tokens_per_expert) {
  double out = 0;
  for (const std::vector<double>& of_router : tokens_per_expert) {
    const double all = std::accumulate(of_router.begin(), of_router.end(), 0.0);
    out = std::max(out, std::ranges::max(of_router) * static_cast<double>(of_router.size()) / all);
  }
  return out;
}

}  // namespace

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
  if (task.routers > 0)
    record.means.emplace_back("largest_load", largest_load(record.tokens_per_expert));
}

}  // namespace tessera
