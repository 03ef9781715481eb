/// What ranks are given: the batch inputs of each run.

#include "tessera/train/rank_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/comm/local.h"
#include "tessera/ops/elementwise.h"
#include "tessera/train/programs.h"
#include "train/step_plan.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

Plan plan_of(Device& device, int rank) {
  ModelConfig model = tiny("gpt2");
  model.layers = 1;
  CompileOptions options;
  options.rank = rank;
  return step_plan(model, 4, {.devices = 2}, device, options);
}

/// Filled once, run twice: refused on ranks as on one device, and no rank hangs.
TEST(RankGroup, InputsOfTheRunBeforeAreNotInputsOfThisOne) {
  try {
    run_ranks(2, [&](Communicator& world) {
      const std::unique_ptr<Device> device = make_cpu_device({1, -1});
      RankGroup group(plan_of(*device, world.rank()), *device, &world);
      if (world.rank() > 0) return group.follow();
      group.run(kInitProgram);
      group.run(kTrainProgram, [](BatchInputs& batch) {
        for (const char* name : {"ids", "labels"})
          std::ranges::fill(batch.fill<std::int32_t>(name), 1);
      });
      EXPECT_TRUE(std::isfinite(group.engine().scalar(kTrainProgram, "loss")));
      group.run(kTrainProgram, [](BatchInputs& batch) {
        std::ranges::fill(batch.fill<std::int32_t>("labels"), 1);
      });
    });
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    EXPECT_NE(
        std::string(error.what()).find("program 'train' is run without its batch input 'ids'"),
        std::string::npos)
        << error.what();
  }
}

/// Callbacks of other ranks hear all of a step, the means of its task included.
TEST(RankGroup, TellsAStepWhole) {
  struct Heard : TrainCallback {
    std::vector<StepRecord> steps;
    void on_step(const StepRecord& record) override { steps.push_back(record); }
  } heard;
  const StepRecord told{
      .step = 7, .loss = 0.1, .ok = false, .means = {{"masked", 1.0 / 3}}, .loss_scale = 512.0};
  run_ranks(2, [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    RankGroup group(plan_of(*device, world.rank()), *device, &world);
    if (world.rank() > 0) return group.follow({&heard});
    group.send_step(told);
    group.stop();
  });
  ASSERT_EQ(heard.steps.size(), 1U);
  EXPECT_EQ(heard.steps[0].step, told.step);
  EXPECT_EQ(heard.steps[0].loss, told.loss);
  EXPECT_EQ(heard.steps[0].means, told.means);
  EXPECT_EQ(heard.steps[0].loss_scale, told.loss_scale);
}

/// A cache is neither gathered for a checkpoint nor wanted from one.
TEST(RankGroup, StatesThatAreSavedAreAllButCaches) {
  Builder builder;
  const TensorType type{DType::F32, {4, 2}, {}};
  const Value cache = builder.state("a.keys", type, Role::Cache, {}),
              weight = builder.state("b.weight", type, Role::Parameter, {});
  builder.next(cache, weight + 1.0);
  builder.next(weight, weight + 2.0);
  Strategy strategy;
  strategy.mesh = Mesh({{"dp", 2}});
  strategy.pins = {{"*", parse_sharding("[dp,-]")}};
  run_ranks(2, [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    CompileOptions options;
    options.rank = world.rank();
    RankGroup group(compile({{"step", builder.so_far(), strategy}}, *device, options), *device,
                    &world);
    if (world.rank() > 0) return group.follow();
    EXPECT_EQ(entries_of(group.plan()),
              (std::vector<TensorEntry>{{"b.weight", type, Role::Parameter}}));
    group.run("step");
    const std::vector<CheckpointTensor> saved = group.states();
    ASSERT_EQ(saved.size(), 1U);
    EXPECT_EQ(saved[0].name, "b.weight");
    EXPECT_EQ(count_parameters(group.plan()), type.numel());
    EXPECT_EQ(group.plan().program("step").memory.caches, 64);  // 4 x 2 floats over two, aligned
    group.stop();
  });
}

}  // namespace
}  // namespace tessera
