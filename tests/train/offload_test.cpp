/// What is offloaded lies on the host, and the device has less. That it changes no bit is looked at
/// in memory_switches_test.cpp.

#include <gtest/gtest.h>

#include "train/memory_mesh.h"

namespace tessera {
namespace {

struct Choice {
  const char* name;
  OffloadStrategy offload;
};
constexpr Choice kChoices[] = {
    {"moments", {.moments = true}},       {"gradients", {.gradients = true}},
    {"parameters", {.parameters = true}}, {"activations", {.activations = true}},
    {"all", {true, true, true, true}},
};

class OffloadedStep : public testing::TestWithParam<MemoryMesh> {};

/// States lie where the strategy says, and the device has less.
TEST_P(OffloadedStep, LeavesLessOnTheDevice) {
  const Graph step = GetParam().step();
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan kept = StagedRun(step, GetParam().strategy()).plan(*device, 0);
  EXPECT_EQ(kept.host_bytes(), 0);
  for (const Choice& choice : kChoices) {
    Strategy strategy = GetParam().strategy();
    strategy.offload = choice.offload;
    const Plan plan = StagedRun(step, strategy).plan(*device, 0);
    EXPECT_GT(plan.host_bytes(), 0) << choice.name;
    // With one micro-batch gradients do not add up: what backward gives is used at once.
    if (choice.offload != OffloadStrategy{.gradients = true})
      EXPECT_LT(plan.lower_bound_bytes(), kept.lower_bound_bytes()) << choice.name;
    else
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

INSTANTIATE_TEST_SUITE_P(Meshes, OffloadedStep, testing::ValuesIn(memory_meshes()),
                         memory_mesh_name);

}  // namespace
}  // namespace tessera
