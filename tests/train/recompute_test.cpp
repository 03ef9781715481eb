/// What backward computes again has the bits of what forward kept: training steps on devices, on
/// meshes and pipelines, with dropout, and with guards around every buffer.

#include <gtest/gtest.h>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"
#include "train/one_device.h"
#include "train/staged_run.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

struct Recomputed {
  const char* name;
  const char* family;
  PipelineStrategy pipeline;
  ParallelConfig parallel;  // of one stage
};

std::ostream& operator<<(std::ostream& out, const Recomputed& c) { return out << c.name; }

Graph step_to_recompute(const char* family) {
  ModelConfig model;
  model.family = family;
  model.layers = 4;
  model.heads = 4;
  model.width = 16;
  model.context = 8;
  model.vocabulary = 19;
  model.dropout = 0.1;
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  return train_step(model, optimizer, 12, model.context);
}

Strategy strategy_with(const Recomputed& c, std::vector<RecomputePin> recompute) {
  Strategy out = strategy_of(c.parallel);
  out.pipeline = c.pipeline;
  out.recompute = std::move(recompute);
  return out;
}

class RecomputedStep : public testing::TestWithParam<Recomputed> {};

TEST_P(RecomputedStep, HasTheBitsOfTheStepThatKeepsAll) {
  const Recomputed& c = GetParam();
  const Graph step = step_to_recompute(c.family);
  const Outcome kept = StagedRun(step, strategy_with(c, {}))();
  const std::vector<std::vector<RecomputePin>> choices = {{{"layers.*", Recompute::Full}},
                                                          {{"layers.*", Recompute::Selective}},
                                                          {{"*", Recompute::Full}},
                                                          {{"layers.*", Recompute::Selective},
                                                           {"layers.1", Recompute::Full},
                                                           {"layers.2", Recompute::None}}};
  for (const std::vector<RecomputePin>& recompute : choices) {
    SCOPED_TRACE(to_text(recompute.back().what));
    StagedRun again(step, strategy_with(c, recompute));
    again.guard_bytes = 64;
    expect_same_bits(kept, again());
  }
}

/// More is computed again, and less is kept.
TEST_P(RecomputedStep, KeepsLess) {
  const Recomputed& c = GetParam();
  const Graph step = step_to_recompute(c.family);
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  std::vector<Plan> plans;
  for (const Recompute what : {Recompute::None, Recompute::Selective, Recompute::Full})
    plans.push_back(StagedRun(step, strategy_with(c, {{"layers.*", what}})).plan(*device, 0));
  const auto of = [&](std::size_t i) -> const ProgramPlan& { return plans[i].program("train"); };
  EXPECT_EQ(of(0).recomputed_flops, 0);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    EXPECT_LT(of(i).work.device.lower_bound_bytes, of(i - 1).work.device.lower_bound_bytes);
    EXPECT_GT(of(i).recomputed_flops, of(i - 1).recomputed_flops);
    const double model = of(i).flops - of(i).recomputed_flops;
    EXPECT_NEAR(model, of(0).flops, 0.02 * of(0).flops);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, RecomputedStep,
    testing::Values(
        Recomputed{"One", "gpt2", {}, {}}, Recomputed{"OneLlama", "llama", {}, {}},
        Recomputed{"Mb3", "gpt2", {}, parallel_of(1, 1, 1, false, 0, 3)},
        Recomputed{"Dp2Zero1", "gpt2", {}, parallel_of(2, 1, 1, false, 1, 2)},
        Recomputed{"Dp2Zero2", "llama", {}, parallel_of(2, 1, 1, false, 2, 3)},
        Recomputed{"Dp3Zero3", "gpt2", {}, parallel_of(3, 1, 1, false, 3, 2)},
        Recomputed{"Tp2", "gpt2", {}, parallel_of(1, 2, 1, false, 0, 1)},
        Recomputed{"Tp2Sp", "llama", {}, parallel_of(1, 2, 1, true, 0, 2)},
        Recomputed{"Cp2", "gpt2", {}, parallel_of(1, 1, 2, false, 0, 1)},
        Recomputed{"Cp2Tp2Dp2Zero3", "gpt2", {}, parallel_of(2, 2, 2, true, 3, 2)},
        Recomputed{"Gpipe2", "gpt2", {2, 1, "gpipe"}, parallel_of(1, 1, 1, false, 0, 4)},
        Recomputed{"One2Tp2", "gpt2", {2, 1, "1f1b"}, parallel_of(1, 2, 1, false, 0, 4)},
        Recomputed{
            "Interleaved2", "llama", {2, 2, "interleaved"}, parallel_of(1, 1, 1, false, 0, 4)},
        Recomputed{"ZbH1Zero3", "gpt2", {2, 1, "zb-h1"}, parallel_of(2, 1, 1, false, 3, 3)},
        Recomputed{"ZbVSp", "llama", {2, 2, "zb-v"}, parallel_of(1, 2, 1, true, 0, 4)}),
    [](const auto& info) { return std::string(info.param.name); });

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
