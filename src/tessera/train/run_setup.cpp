#include "tessera/train/run_setup.h"

#include <utility>

#include "tessera/base/text.h"
#include "tessera/config/run_needs.h"
#include "tessera/models/adapters.h"
#include "tessera/models/family.h"
#include "tessera/models/parallel.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

std::vector<TrainProgram> train_programs(const RunConfig& config, std::optional<Task> task) {
  std::vector<std::int64_t> lengths = bucket_lengths(config);
  if (lengths.empty()) lengths.push_back(0);
  lengths.back() = 0;  // the longest: as the model is
  std::rotate(lengths.begin(), lengths.end() - 1, lengths.end());
  std::vector<TrainProgram> out;
  for (const std::int64_t length : lengths) {
    const bool whole = length == 0;
    out.push_back({length, whole ? kTrainProgram : text(kTrainProgram, ".", length),
                   whole && task
                       ? *std::move(task)
                       : task_of(whole ? config.model : at_length(config.model, length))});
  }
  return out;
}

Strategy in_micro_batches(Strategy strategy, std::int64_t number) {
  std::vector<Axis> axes = strategy.mesh.axes();
  axes.push_back({std::string(kMicrobatchAxis), number, Level::Time});
  strategy.mesh = Mesh(std::move(axes));
  return strategy;
}

}  // namespace

Strategy cut_strategy(const RunConfig& config) {
  return strategy_of(config.parallel, BatchSplit::Cut, config.model);
}

RunSetup::RunSetup(RunConfig complete, std::optional<Task> task)
    : config(std::move(complete)),
      precision(precision_of(config)),
      trains(train_programs(config, std::move(task))),
      whole(strategy_of(config.parallel, BatchSplit::Whole, config.model)),
      cut(cut_strategy(config)),
      step(in_micro_batches(cut, config.micro_batches())) {
  require_adapter_targets(config.model);
  compile.seed = static_cast<std::uint64_t>(config.seed);
  compile.tf32 = config.tf32;
  compile.machine = config.parallel.machine;
  compile.optimize = Optimizations::all(config.graph_optimization);
}

}  // namespace tessera
