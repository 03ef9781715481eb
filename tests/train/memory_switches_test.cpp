/// Recomputing, offloading, the scope of gathering and buckets change no bit of a training step:
/// each switch alone, in pairs, and all at once, with guards around every buffer.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tessera/passes/compute_in.h"
#include "train/memory_mesh.h"

namespace tessera {
namespace {

struct Switch {
  const char* name;
  const char* kind;  // of one kind there is one at a time
  void (*set)(Strategy&);
};

constexpr Switch kSwitches[] = {
    {"recompute elementwise", "recompute",
     [](Strategy& s) {
       s.recompute = {{"*layers.*", Recompute::Elementwise}};
     }},
    {"recompute a little of everything", "recompute",
     [](Strategy& s) {
       s.recompute = {{"*", Recompute::Elementwise}, {"*layers.1", Recompute::Full}};
     }},
    {"recompute selective", "recompute",
     [](Strategy& s) {
       s.recompute = {{"*layers.*", Recompute::Selective}, {"*layers.1", Recompute::None}};
     }},
    {"recompute full", "recompute",
     [](Strategy& s) {
       s.recompute = {{"*layers.*", Recompute::Full}};
     }},
    {"recompute everything", "recompute",
     [](Strategy& s) {
       s.recompute = {{"*", Recompute::Full}};
     }},
    {"offload moments", "moments", [](Strategy& s) { s.offload.moments = true; }},
    {"offload gradients", "gradients", [](Strategy& s) { s.offload.gradients = true; }},
    {"offload parameters", "parameters", [](Strategy& s) { s.offload.parameters = true; }},
    {"offload activations", "activations", [](Strategy& s) { s.offload.activations = true; }},
    {"gather use", "gather", [](Strategy& s) { s.gather = GatherScope::Use; }},
    {"gather step", "gather", [](Strategy& s) { s.gather = GatherScope::Step; }},
    {"one bucket", "buckets", [](Strategy& s) { s.buckets.bytes = 1 << 20; }},
    {"small buckets and groups", "buckets",
     [](Strategy& s) {
       s.buckets = {6000, {{"*layers.0.*", 1}, {"*layers.0.mlp*", 1}, {"*layers.0.norm*", 0}}};
     }},
};

struct Setting {
  std::string name;
  std::vector<const Switch*> of;
};

/// All switches alone, at once, and in pairs: on each mesh an eighth of the pairs, other ones on
/// the next mesh; all of them where TESSERA_ALL_PAIRS is set.
std::vector<Setting> settings(std::size_t mesh) {
  std::vector<Setting> out;
  std::size_t pairs = 0;
  for (const Switch& one : kSwitches) {
    out.push_back({one.name, {&one}});
    for (const Switch& other : kSwitches) {
      if (&other <= &one || std::string_view(one.kind) == other.kind) continue;
      if ((pairs++ + mesh) % 8 == 0 || std::getenv("TESSERA_ALL_PAIRS") != nullptr)
        out.push_back({text(one.name, " and ", other.name), {&one, &other}});
    }
  }
  Setting all{"all", {}};
  for (const Switch& one : kSwitches) all.of.push_back(&one);
  out.push_back(all);
  return out;
}

/// Calls of the step that read a packed weight.
int num_packed_products(const Plan& plan) {
  int out = 0;
  for (const RegionPlan& region : plan.program(kTrainProgram).regions) {
    for (const Call& call : region.calls) {
      if (call.kernel == nullptr) continue;
      const std::string types = types_text(call);
      out += types.substr(0, types.find("->")).find('@') != std::string::npos ? 1 : 0;
    }
  }
  return out;
}

class MemorySwitches : public testing::TestWithParam<MemoryMesh> {};

TEST_P(MemorySwitches, ChangeNoBit) {
  const std::vector<MemoryMesh> meshes = memory_meshes();
  const auto mesh = static_cast<std::size_t>(
      std::ranges::find(meshes, std::string_view(GetParam().name), &MemoryMesh::name) -
      meshes.begin());
  const Graph step = GetParam().step();
  const Outcome plain = StagedRun(step, GetParam().strategy(), GetParam().inputs())();
  for (const Setting& setting : settings(mesh)) {
    SCOPED_TRACE(setting.name);
    Strategy strategy = GetParam().strategy();
    for (const Switch* one : setting.of) one->set(strategy);
    StagedRun run(step, strategy, GetParam().inputs());
    run.guard_bytes = 64;
    expect_same_bits(plain, run());
  }
}

/// In mixed precision too, where forward and backward read copies of parameters.
TEST_P(MemorySwitches, ChangeNoBitInSixteenBits) {
  OptimizerConfig optimizer;
  optimizer.loss_scale.on = true;
  const Graph step = compute_in(GetParam().step(optimizer), {.compute = DType::F16});
  const Outcome plain = StagedRun(step, GetParam().strategy(), GetParam().inputs())();
  for (const Switch& one : kSwitches) {
    SCOPED_TRACE(one.name);
    Strategy strategy = GetParam().strategy();
    one.set(strategy);
    StagedRun run(step, strategy, GetParam().inputs());
    run.guard_bytes = 64;
    expect_same_bits(plain, run());
  }
}

/// Products read packed weights, from the host as from the device: packed or not, the order in
/// which a product adds up is another on some instruction sets.
TEST_P(MemorySwitches, ChangeNoPackedProduct) {
  const Graph step = GetParam().step();
  StagedRun plain(step, GetParam().strategy(), GetParam().inputs());
  plain.device.pack_always = true;
  const Outcome kept = plain();
  for (const GatherScope scope : {GatherScope::Use, GatherScope::Block, GatherScope::Step}) {
    SCOPED_TRACE(to_text(scope));
    Strategy strategy = GetParam().strategy();
    strategy.offload = {true, true, true, true};
    strategy.gather = scope;
    StagedRun run(step, strategy, GetParam().inputs());
    run.device = plain.device;
    expect_same_bits(kept, run());
    const std::unique_ptr<Device> device = make_cpu_device(run.device);
    EXPECT_EQ(num_packed_products(run.plan(*device, 0)),
              num_packed_products(plain.plan(*device, 0)));
  }
}

/// A stage has the same blocks, whatever is computed again in them.
TEST(RecomputedStages, HaveTheSameBlocks) {
  ModelConfig model = tiny("gpt2");
  model.layers = 12;
  model.vocabulary = 1000;  // the head counts
  const Graph step = train_step(model, OptimizerConfig(), 4, model.context);
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const auto states_of_stage_0 = [&](std::vector<RecomputePin> pins) {
    Strategy strategy = strategy_of(parallel_of(1, 1, 1, false, 0, 2));
    strategy.pipeline = {2, 1, "1f1b"};
    strategy.recompute = std::move(pins);
    const Plan plan = StagedRun(step, strategy).plan(*device, 0);
    std::vector<std::string> out;
    for (const StatePlan& state : plan.states) {
      if (plan.has(state)) out.push_back(state.state.path);
    }
    return out;
  };
  const std::vector<std::string> kept = states_of_stage_0({});
  EXPECT_EQ(states_of_stage_0({{"layers.*", Recompute::Full}}), kept);
  EXPECT_EQ(states_of_stage_0({{"layers.1", Recompute::Full}}), kept);
}

INSTANTIATE_TEST_SUITE_P(Meshes, MemorySwitches, testing::ValuesIn(memory_meshes()),
                         memory_mesh_name);

}  // namespace
}  // namespace tessera
