/// What lies on the host has the bits of what lies on the device: training steps with each kind of
/// offloading, alone and together, on meshes and pipelines, with dropout, guards and poison.

#include <gtest/gtest.h>

#include "train/one_device.h"
#include "train/staged_run.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

struct Offloaded {
  const char* name;
  const char* family;
  PipelineStrategy pipeline;
  ParallelConfig parallel;  // of one stage
  OptimizerKind optimizer = OptimizerKind::AdamW;
};

std::ostream& operator<<(std::ostream& out, const Offloaded& c) { return out << c.name; }

Graph step_to_offload(const Offloaded& c) {
  ModelConfig model;
  model.family = c.family;
  model.layers = 4;
  model.heads = 4;
  model.width = 16;
  model.context = 8;
  model.vocabulary = 19;
  model.dropout = 0.1;
  OptimizerConfig optimizer;
  optimizer.kind = c.optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  return train_step(model, optimizer, 12, model.context);
}

struct Choice {
  const char* name;
  OffloadStrategy offload;
  Recompute recompute = Recompute::None;
};
constexpr Choice kChoices[] = {
    {"moments", {true, false, false}},
    {"gradients", {false, true, false}},
    {"parameters", {false, false, true}},
    {"moments and gradients", {true, true, false}},
    {"moments and parameters", {true, false, true}},
    {"gradients and parameters", {false, true, true}},
    {"all", {true, true, true}},
    {"all, and recomputed", {true, true, true}, Recompute::Full},
};

Strategy with_choice(const Offloaded& c, const Choice& choice) {
  Strategy out = strategy_of(c.parallel);
  out.pipeline = c.pipeline;
  out.offload = choice.offload;
  out.recompute = {{"layers.*", choice.recompute}};
  return out;
}

class OffloadedStep : public testing::TestWithParam<Offloaded> {};

TEST_P(OffloadedStep, HasTheBitsOfTheStepOnTheDevice) {
  const Graph step = step_to_offload(GetParam());
  const Outcome kept = StagedRun(step, with_choice(GetParam(), {}))();
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(choice.name);
    StagedRun there(step, with_choice(GetParam(), choice));
    there.guard_bytes = 64;
    expect_same_bits(kept, there());
  }
}

/// States lie where the strategy says, and the device has less.
TEST_P(OffloadedStep, LeavesLessOnTheDevice) {
  const Graph step = step_to_offload(GetParam());
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan kept = StagedRun(step, with_choice(GetParam(), {})).plan(*device, 0);
  EXPECT_EQ(kept.host_bytes(), 0);
  for (const Choice& choice : kChoices) {
    const Plan plan = StagedRun(step, with_choice(GetParam(), choice)).plan(*device, 0);
    EXPECT_GT(plan.host_bytes(), 0) << choice.name;
    EXPECT_LE(plan.lower_bound_bytes(), kept.lower_bound_bytes()) << choice.name;
    for (const StatePlan& state : plan.states) {
      const bool host = state.state.role == Role::Parameter ? choice.offload.parameters
                        : state.state.role == Role::Moment  ? choice.offload.moments
                                                            : false;
      if (!plan.has(state)) continue;
      EXPECT_EQ(state.place.memory == Memory::Host, host) << choice.name << " " << state.state.path;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, OffloadedStep,
    testing::Values(
        Offloaded{"One", "gpt2", {}, {}},
        Offloaded{"OneLamb", "llama", {}, {}, OptimizerKind::Lamb},
        Offloaded{"OneSgd", "gpt2", {}, {}, OptimizerKind::Sgd},
        Offloaded{"Mb3", "gpt2", {}, parallel_of(1, 1, 1, false, 0, 3)},
        Offloaded{"Dp2", "gpt2", {}, parallel_of(2, 1, 1, false, 0, 2)},
        Offloaded{"Dp2Zero1", "llama", {}, parallel_of(2, 1, 1, false, 1, 2)},
        Offloaded{"Dp2Zero2", "gpt2", {}, parallel_of(2, 1, 1, false, 2, 3)},
        Offloaded{
            "Dp3Zero3Lamb", "gpt2", {}, parallel_of(3, 1, 1, false, 3, 2), OptimizerKind::Lamb},
        Offloaded{"Tp2Sp", "llama", {}, parallel_of(1, 2, 1, true, 0, 2)},
        Offloaded{"Cp2Tp2Dp2Zero3", "gpt2", {}, parallel_of(2, 2, 2, true, 3, 2)},
        Offloaded{"One2Tp2", "gpt2", {2, 1, "1f1b"}, parallel_of(1, 2, 1, false, 0, 4)},
        Offloaded{"Interleaved2Lamb",
                  "llama",
                  {2, 2, "interleaved"},
                  parallel_of(1, 1, 1, false, 0, 4),
                  OptimizerKind::Lamb},
        Offloaded{"ZbH1Zero3", "gpt2", {2, 1, "zb-h1"}, parallel_of(2, 1, 1, false, 3, 3)},
        Offloaded{"ZbVZero1", "llama", {2, 2, "zb-v"}, parallel_of(2, 1, 1, false, 1, 3)}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera
