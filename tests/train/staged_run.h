#pragma once
/// Training steps on devices, each rank a thread with a plan of its own, and what comes of them.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/comm/local.h"
#include "tessera/plan/traffic.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "tessera/train/step.h"
#include "train/sent_bytes.h"
#include "train/tiny_step.h"

namespace tessera {

struct Outcome {
  std::map<std::string, std::vector<double>> metrics;  // by name, of each step
  std::map<std::string, HostTensor> states;            // at the end
};

/// Random elements, others in each step.
inline void fill_inputs(BatchInputs& batch, const std::vector<TaskInput>& inputs,
                        std::int64_t step) {
  RandomNumbers next(static_cast<std::uint64_t>(step));
  for (const TaskInput& input : inputs) {
    const auto fill = [&]<typename T>(std::span<T> elements) {
      for (std::int64_t i = 0; T & element : elements)
        element = static_cast<T>(random_element(input, i++, next));
    };
    if (input.dtype == DType::F32) {
      fill(batch.fill<float>(input.name));
    } else {
      fill(batch.fill<std::int32_t>(input.name));
    }
  }
}

/// Steps of `step`, as each rank runs them.
class StagedRun {
 public:
  /// `inputs`: of the task; where it is not told, those of tiny language models.
  StagedRun(const Graph& step, const Strategy& strategy,
            std::vector<TaskInput> inputs = task_of(tiny("gpt2")).inputs)
      : step_(step), strategy_(strategy), inputs_(std::move(inputs)) {}
  std::int64_t steps = 3;
  std::int64_t guard_bytes = 0;
  CpuOptions device = {1, -1};
  Optimizations optimize = {};
  StripLimits strips = {};
  RingLimits rings = {};

  Outcome operator()() const {
    Outcome out;
    const std::int64_t ranks = strategy_.pipeline.stages * strategy_.mesh.ranks();
    if (ranks == 1) {
      run_rank(nullptr, out);
    } else {
      run_ranks(static_cast<int>(ranks), [&](Communicator& world) { run_rank(&world, out); });
    }
    return out;
  }

  Plan plan(Device& device, int rank) const {
    CompileOptions options;
    options.rank = rank;
    options.guard_bytes = guard_bytes;
    options.optimize = optimize;
    options.strips = strips;
    options.rings = rings;
    std::vector<Axis> axes = strategy_.mesh.axes();
    std::erase_if(axes, [](const Axis& axis) { return axis.level == Level::Time; });
    Strategy init = strategy_;
    init.mesh = Mesh(std::move(axes));
    return compile({{kInitProgram, initialise(step_), init}, {kTrainProgram, step_, strategy_}},
                   device, options);
  }

 private:
  void run_rank(Communicator* world, Outcome& out) const {
    const std::unique_ptr<Device> cpu = make_cpu_device(device);
    const int rank = world == nullptr ? 0 : world->rank();
    RankGroup group(plan(*cpu, rank), *cpu, world);
    if (rank == 0) {
      lead(group, out);
    } else {
      group.follow();
    }
    expect_planned_counts(group, rank);
  }

  void lead(RankGroup& group, Outcome& out) const {
    group.run(kInitProgram);
    for (std::int64_t step = 0; step < steps; ++step) {
      group.run(kTrainProgram, [&](BatchInputs& batch) { fill_inputs(batch, inputs_, step); });
      for (const NamedTensor& metric : group.plan().program(kTrainProgram).metrics) {
        if (metric.type.ndim() == 0)
          out.metrics[metric.name].push_back(group.engine().scalar(kTrainProgram, metric.name));
      }
    }
    for (const CheckpointTensor& tensor : group.states()) {
      HostTensor& copy = out.states[tensor.name] = HostTensor(tensor.type);
      std::ranges::copy(tensor.bytes, copy.bytes().begin());
    }
    group.forget_states();
    group.stop();
  }

  /// What the communicators counted is what the plan says.
  void expect_planned_counts(const RankGroup& group, int rank) const {
    std::map<std::string, Counts> planned =
        planned_counts(group.plan().program(kTrainProgram), steps);
    for (const auto& [axes, counts] : planned_counts(group.plan().program(kInitProgram))) {
      for (std::size_t k = 0; k < counts.size(); ++k) {
        planned[axes][k].calls += counts[k].calls;
        planned[axes][k].bytes += counts[k].bytes;
      }
    }
    const std::scoped_lock lock(mutex_);  // failures are told one at a time
    expect_sent(const_cast<RankGroup&>(group).engine().sent(), planned, rank);
  }

  const Graph& step_;
  Strategy strategy_;
  std::vector<TaskInput> inputs_;
  mutable std::mutex mutex_;
};

inline void expect_same_bits(const Outcome& one, const Outcome& other) {
  EXPECT_EQ(other.metrics, one.metrics);
  for (const auto& [path, value] : one.states)
    EXPECT_TRUE(std::ranges::equal(value.bytes(), other.states.at(path).bytes())) << path;
}

/// Losses and norms, then states: `rate` is the learning rate.
inline void expect_same_training(const Outcome& one, const Outcome& other) {
  for (const auto& [name, values] : one.metrics) {
    ASSERT_EQ(other.metrics.at(name).size(), values.size());
    const double bound = name == "loss" ? 1e-5 : 1e-4;
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(other.metrics.at(name)[i], values[i], bound * std::abs(values[i]))
          << name << " of step " << i + 1;
  }
  ASSERT_EQ(other.states.size(), one.states.size());
  for (const auto& [path, value] : one.states) {
    // A key bias has no gradient but rounding noise, of which Adam makes steps of the rate.
    const double bound = path.ends_with("kv.bias") ? 1e-2 : 2e-4;
    for (std::int64_t i = 0; i < value.numel(); ++i)
      ASSERT_NEAR(other.states.at(path).at(i), value.at(i), bound) << path << " [" << i << "]";
  }
}

}  // namespace tessera
