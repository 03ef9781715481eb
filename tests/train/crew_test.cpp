/// What ranks are given: the batch inputs of each run.

#include "tessera/train/crew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/comm/local.h"
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
TEST(Crew, InputsOfTheRunBeforeAreNotInputsOfThisOne) {
  try {
    run_ranks(2, [&](Communicator& world) {
      const std::unique_ptr<Device> device = make_cpu_device({1, -1});
      Crew crew(plan_of(*device, world.rank()), *device, &world);
      if (world.rank() > 0) return crew.follow();
      crew.run(kInitProgram);
      crew.run(kTrainProgram, [](BatchInputs& batch) {
        for (const char* name : {"ids", "labels"})
          std::ranges::fill(batch.fill<std::int32_t>(name), 1);
      });
      EXPECT_TRUE(std::isfinite(crew.executor().scalar(kTrainProgram, "loss")));
      crew.run(kTrainProgram, [](BatchInputs& batch) {
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

}  // namespace
}  // namespace tessera
