/// Whole programs on XLA's plugin: states stay on its devices, and train as executors train them.

#include "hlo/on_plugin.h"
#include "tessera/ops/interpret_ranks.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/recompute.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"
#include "train/staged_run.h"
#include "worst.h"

namespace tessera::test {

namespace {

using hlo::Port;

Program program_of(const Graph& graph, const Strategy& strategy) {
  return partition(propagate(add_uses(recompute(simplify(graph), strategy.recompute)), strategy));
}

/// Steps of a training program on the plugin's devices.
class PluginRun {
 public:
  PluginRun(const Graph& step, const Strategy& strategy, std::vector<TaskInput> inputs)
      : inputs_(std::move(inputs)),
        init_(hlo::whole_module("init", program_of(initialise(step), without_time(strategy)))),
        train_(hlo::whole_module("train", program_of(step, strategy))) {}

  Outcome operator()(std::int64_t steps) {
    Outcome out;
    run(init_, -1, out);
    for (std::int64_t step = 0; step < steps; ++step) run(train_, step, out);
    for (const auto& [path, shards] : states_) {
      const Port& port =
          train_.module.arguments[at(train_.module.argument(Port::Kind::State, path))];
      std::vector<HostTensor> tensors;
      for (const pjrt::Buffer& shard : shards) {
        tensors.emplace_back(port.result.type);
        shard.read(tensors.back().bytes());
      }
      out.states[path] = joined(tensors, port.result, train_.module.mesh, Replicas::First);
    }
    return out;
  }

 private:
  static Strategy without_time(Strategy strategy) {
    std::vector<Axis> axes = strategy.mesh.axes();
    std::erase_if(axes, [](const Axis& axis) { return axis.level == Level::Time; });
    strategy.mesh = Mesh(std::move(axes));
    return strategy;
  }

  std::map<std::string, HostTensor> batch_of(const hlo::Module& module, std::int64_t step) const {
    std::map<std::string, HostTensor> out;
    BatchInputs filled("train");
    for (const Port& port : module.arguments) {
      if (port.kind != Port::Kind::Batch) continue;
      HostTensor& tensor = out[port.name] = HostTensor(port.result.type.dtype, port.result.logical);
      filled.add(port.name, tensor.type(), tensor.bytes().data());
    }
    if (!out.empty()) fill_inputs(filled, inputs_, step);
    return out;
  }

  void run(const OnPlugin& program, std::int64_t step, Outcome& out) {
    const hlo::Module& module = program.module;
    const std::map<std::string, HostTensor> batch = batch_of(module, step);
    const std::size_t ranks = at(module.replicas());
    pjrt::Results inputs(ranks);
    pjrt::Arguments arguments(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      inputs[rank].reserve(module.arguments.size());
      for (const Port& port : module.arguments) {
        if (port.kind == Port::Kind::Batch) {
          const auto number = static_cast<std::int64_t>(rank);
          const HostTensor shard = shard_of(batch.at(port.name), port.result, module.mesh,
                                            coordinates_of(module.mesh, number), Beyond::Zeros);
          inputs[rank].push_back(program.put(shard, number));
        }
        arguments[rank].push_back(port.kind == Port::Kind::Batch ? &inputs[rank].back()
                                                                 : &states_.at(port.name)[rank]);
      }
    }
    pjrt::Results results = program.run(arguments);
    for (std::size_t i = 0; i < module.results.size(); ++i) {
      const Port& port = module.results[i];
      if (port.kind == Port::Kind::State) {
        std::vector<pjrt::Buffer>& shards = states_[port.name];
        shards.resize(ranks);
        for (std::size_t rank = 0; rank < ranks; ++rank) shards[rank] = std::move(results[rank][i]);
      } else if (port.result.type.ndim() == 0) {
        out.metrics[port.name].push_back(program.get(results[0][i], static_cast<int>(i)).at(0));
      }
    }
  }

  std::vector<TaskInput> inputs_;
  OnPlugin init_, train_;
  std::map<std::string, std::vector<pjrt::Buffer>> states_;  // by rank
};

struct RunCase {
  const char *name, *family;
  ParallelConfig parallel;
  std::int64_t steps = 3;
};

class Runs : public testing::TestWithParam<RunCase> {};

TEST_P(Runs, TrainAsExecutorsDo) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  const auto& [name, family, parallel, steps] = GetParam();
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const Task task = task_of(tiny(family));
  const Graph step = train_step(task, optimizer, 12);
  const Strategy strategy = strategy_of(parallel, BatchSplit::Cut, tiny(family));
  StagedRun executors(step, strategy, task.inputs);
  executors.steps = steps;
  const Outcome want = executors(), got = PluginRun(step, strategy, task.inputs)(steps);
  expect_same_training(want, got);
  double worst = 0;
  for (std::size_t i = 0; i < want.metrics.at("loss").size(); ++i) {
    const double loss = want.metrics.at("loss")[i];
    worst = worse_of(worst, std::abs(got.metrics.at("loss")[i] - loss) / std::abs(loss));
  }
  std::cout << name << ": " << steps << " steps, losses within " << worst << "\n";
}

ParallelConfig recomputed(ParallelConfig of) {
  of.recompute = Recompute::Full;
  return of;
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Runs,
    testing::Values(
        RunCase{"One", "gpt2", {}, 10}, RunCase{"OneMb3", "gpt2", {.micro_batches = 3}},
        RunCase{"Recomputed", "gpt2", recomputed({})},
        RunCase{"Dp2", "gpt2", parallel_of(2, 1, 1, false, 0, 1), 10},
        RunCase{"Tp2Sp", "gpt2", parallel_of(1, 2, 1, true, 0, 1)},
        RunCase{"Dp3Zero3Mb4Uneven", "gpt2", parallel_of(3, 1, 1, false, 3, 4)},
        RunCase{"Dp2Tp2SpZero1Mb2", "gpt2", parallel_of(2, 2, 1, true, 1, 2), 10},
        RunCase{"Cp2Dp2Zero3", "gpt2", parallel_of(2, 1, 2, false, 3, 2)},
        RunCase{"Cp2Tp2Dp2Zero3", "llama", parallel_of(2, 2, 2, true, 3, 2)},
        RunCase{"BertDp2Tp2", "bert", parallel_of(2, 2, 1, true, 1, 2)},
        RunCase{"MixtralEp2Dp4", "mixtral", experts(2, parallel_of(4, 1, 1, false, 1, 3))},
        RunCase{"RoutedEp2", "mixtral-routed", experts(2, parallel_of(2, 1, 1, false, 1, 2))},
        RunCase{"DeepseekV3Ep2Tp2", "deepseek_v3", experts(2, parallel_of(2, 2, 1, true, 0, 1))},
        RunCase{"EncoderDecoderTp2", "transformer", parallel_of(1, 2, 1, false, 0, 1)},
        RunCase{"T5Dp3", "t5", parallel_of(3, 1, 1, false, 2, 2)},
        RunCase{"VitDp2Tp2", "vit", parallel_of(2, 2, 1, true, 3, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace

}  // namespace tessera::test
