/// Recomputing keeps less, and computes as much more as the plan says. That it changes no bit is
/// looked at in memory_switches_test.cpp.

#include <gtest/gtest.h>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"
#include "train/memory_mesh.h"

namespace tessera {
namespace {

class RecomputedStep : public testing::TestWithParam<MemoryMesh> {};

/// More is computed again, and less is kept. Selective keeps products that elementwise drops, so
/// that in small models it may keep more.
TEST_P(RecomputedStep, KeepsLess) {
  const Graph step = GetParam().step();
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  std::vector<Plan> plans;
  for (const Recompute what :
       {Recompute::None, Recompute::Elementwise, Recompute::Selective, Recompute::Full}) {
    Strategy strategy = GetParam().strategy();
    strategy.recompute = {{"*layers.*", what}};
    plans.push_back(StagedRun(step, strategy).plan(*device, 0));
  }
  const auto of = [&](std::size_t i) -> const ProgramPlan& { return plans[i].program("train"); };
  EXPECT_EQ(of(0).recomputed_flops, 0);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    SCOPED_TRACE(kRecomputes[i]);
    const std::size_t more = plans.size() == i + 1 ? i - 1 : 0;
    EXPECT_LT(of(i).work.device.lower_bound_bytes, of(more).work.device.lower_bound_bytes);
    EXPECT_GT(of(i).recomputed_flops, of(i - 1).recomputed_flops);
    const double model = of(i).flops - of(i).recomputed_flops;
    EXPECT_NEAR(model, of(0).flops, 1e-9 * of(0).flops);
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, RecomputedStep, testing::ValuesIn(memory_meshes()),
                         memory_mesh_name);

/// The plan says of each block what it keeps and what is computed again.
TEST(Recompute, IsToldBlockByBlock) {
  const MemoryMesh mesh{"Mb3", "gpt2", {}, parallel_of(1, 1, 1, false, 0, 3)};
  const Graph step = mesh.step();
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const auto blocks_with = [&](std::vector<RecomputePin> pins, bool offload) {
    Strategy strategy = mesh.strategy();
    strategy.recompute = std::move(pins);
    strategy.offload.activations = offload;
    std::map<std::string, BlockUse> out;
    const Plan plan = StagedRun(step, strategy).plan(*device, 0);
    for (const BlockUse& block : plan.program("train").blocks) out.emplace(block.block, block);
    return out;
  };
  const auto kept = blocks_with({}, false), there = blocks_with({}, true);
  const auto again = blocks_with({{"layers.1", Recompute::Full}}, false);
  ASSERT_EQ(kept.size(), again.size());
  const std::int64_t input = 4 * 8 * 16 * 4;  // 4 samples of 8 positions, width 16, f32
  EXPECT_EQ(again.at("layers.1").kept_bytes.device, input);
  EXPECT_EQ(again.at("layers.1").recomputed_ops.at("matmul"), 3);  // all but the last
  EXPECT_GT(again.at("layers.1").recomputed_flops, 0);
  for (const auto& [name, block] : kept) {
    EXPECT_EQ(block.recomputed_flops, 0) << name;
    EXPECT_EQ(block.kept_bytes.host, 0) << name;
    EXPECT_EQ(there.at(name).kept_bytes.device, 0) << name;
    if (name == "layers.1") continue;
    EXPECT_EQ(again.at(name).kept_bytes, block.kept_bytes) << name;
    EXPECT_EQ(again.at(name).recomputed_flops, 0) << name;
  }
  EXPECT_GT(there.at("layers.1").kept_bytes.host, input);
}

/// Selective keeps products of activations and weights, of all of them or of the experts chosen.
TEST(Recompute, SelectiveKeepsProductsOfWeights) {
  for (const char* family : {"llama", "mixtral"}) {
    SCOPED_TRACE(family);
    const MemoryMesh mesh{family, family, {}, {}};
    Strategy strategy = mesh.strategy();
    strategy.recompute = {{"layers.*", Recompute::Selective}};
    const Plan plan = StagedRun(mesh.step(), strategy).plan(*make_cpu_device({1, -1}), 0);
    int layers = 0;
    for (const BlockUse& block : plan.program("train").blocks) {
      if (!block.block.starts_with("layers.")) continue;
      ++layers;
      EXPECT_GT(block.recomputed_ops.size(), 0U) << block.block;
      for (const char* product : {"matmul", "grouped_matmul"})
        EXPECT_EQ(block.recomputed_ops.count(product), 0U) << block.block << ", " << product;
    }
    EXPECT_EQ(layers, 4);
  }
}

/// A layer says of itself that it is computed again.
TEST(Recompute, AsTheModelSays) {
  const auto plan_with = [](Recompute what) {
    Builder builder;
    const Value x = builder.batch("x", {DType::F32, {64, 8}, {}});
    Value h = x;
    for (int layer = 0; layer < 3; ++layer) {
      Scope scope(builder, text("layers.", layer));
      scope.recompute(what);
      const Value w = builder.state("w", {DType::F32, {8, 8}, {}}, Role::Parameter,
                                    {Init::Kind::Constant, 0.1});
      h = h + tanh(exp(matmul(h, w)));
    }
    std::vector<Value> weights;
    for (const State& state : builder.so_far().states()) weights.emplace_back(builder, state.value);
    const std::vector<Value> grads = gradients(sum_all(h), weights);
    for (std::size_t i = 0; i < grads.size(); ++i)
      builder.output(Output::Kind::Metric, text("g", i), grads[i]);
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    return compile({{"train", builder.finish(), one_device(1)}}, *device);
  };
  const Plan kept = plan_with(Recompute::None), again = plan_with(Recompute::Full);
  EXPECT_LT(again.lower_bound_bytes(), kept.lower_bound_bytes());
  EXPECT_GT(again.programs[0].recomputed_flops, 0);
}

}  // namespace
}  // namespace tessera
