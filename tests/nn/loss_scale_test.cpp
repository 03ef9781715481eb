/// The loss scale against Megatron-LM's rules, written out in plain code here.

#include "tessera/nn/loss_scale.h"

#include <algorithm>
#include <random>

#include "nn/update_run.h"

namespace tessera {
namespace {

using test::UpdateBatch;
using test::UpdateRun;

class PlainScale {
 public:
  explicit PlainScale(const LossScaleConfig& config)
      : c_(config), scale(config.initial), chances_(config.hysteresis) {}

  void step(bool found_inf) {
    if (found_inf) {
      good_ = 0;
      chances_ -= 1;
      if (chances_ <= 0) scale = std::max(scale * 0.5, c_.least);
    } else {
      good_ += 1;
      if (good_ >= c_.window) {
        good_ = 0;
        chances_ = c_.hysteresis;
        scale = scale * 2;
      }
    }
  }

 private:
  LossScaleConfig c_;

 public:
  double scale;

 private:
  std::int64_t good_ = 0, chances_;
};

OptimizerConfig scaled(const LossScaleConfig& scale) {
  OptimizerConfig out;
  out.schedule = {.kind = ScheduleKind::Constant, .lr = 0.02};
  out.loss_scale = scale;
  return out;
}

/// The scales of a run whose steps are all good or all bad.
std::vector<double> scales_of(const LossScaleConfig& config, const std::vector<double>& states,
                              bool ok, int steps) {
  Builder builder;
  const Value good = builder.batch("ok", {DType::Bool, {}, {}});
  update_loss_scale(loss_scale(builder, config), good, config);
  const Graph graph = builder.finish();
  Bindings in;
  for (std::size_t i = 0; i < graph.states().size(); ++i) {
    HostTensor value(graph.type(graph.states()[i].value));
    value.set(0, states[i]);
    in.states.emplace(graph.states()[i].path, value);
  }
  HostTensor flag(DType::Bool, {});
  flag.set(0, ok ? 1 : 0);
  in.batch.emplace("ok", flag);
  std::vector<double> out;
  for (int step = 0; step < steps; ++step) {
    const std::vector<HostTensor> next = interpret(graph, in, {});
    for (std::size_t i = 0; i < next.size(); ++i) in.states[graph.outputs()[i].name] = next[i];
    out.push_back(in.states.at("loss_scale").at(0));
  }
  return out;
}

/// States in the order of their making: the scale, good steps, chances.
TEST(LossScale, ANewWindowActsAtOnce) {
  EXPECT_EQ(scales_of({.on = true, .window = 5}, {8, 10, 2}, true, 2),
            (std::vector<double>{16, 16}));
}

TEST(LossScale, IsNeverRaisedByABadStep) {
  EXPECT_EQ(scales_of({.on = true, .least = 1e9, .hysteresis = 1}, {8, 0, 1}, false, 3),
            (std::vector<double>{8, 8, 8}));
}

TEST(LossScale, DoesNotGrowToInfinity) {
  EXPECT_EQ(scales_of({.on = true, .window = 1}, {0x1p98, 0, 2}, true, 3),
            (std::vector<double>{0x1p99, 0x1p99, 0x1p99}));
}

TEST(LossScale, IsMegatronsAfterAnyStory) {
  const LossScaleConfig configs[] = {{.on = true, .window = 3},
                                     {.on = true, .initial = 8, .window = 2, .hysteresis = 1},
                                     {.on = true, .initial = 64, .least = 4, .window = 5},
                                     {.on = true, .window = 1, .hysteresis = 3}};
  std::mt19937 random(1);
  for (const LossScaleConfig& config : configs) {
    for (const unsigned bad_of_8 : {1u, 4u, 7u}) {
      UpdateRun run(scaled(config));
      PlainScale want(config);
      const UpdateBatch good = test::update_batches()[0], bad = test::update_batches()[2];
      for (int step = 0; step < 60; ++step) {
        const bool found_inf = random() % 8 < bad_of_8;
        run.step(found_inf ? bad : good);
        want.step(found_inf);
        ASSERT_EQ(run.loss_scale_now(), want.scale) << "step " << step;
      }
    }
  }
}

/// Whatever the scale is, parameters and moments become what they become without one.
TEST(LossScale, ChangesNoUpdate) {
  for (const double clip : {0.0, 0.5, 100.0}) {
    OptimizerConfig config = scaled({.on = true, .initial = 1024, .window = 2});
    config.clip = clip;
    UpdateRun with(config);
    config.loss_scale.on = false;
    UpdateRun without(config);
    for (const UpdateBatch& batch : test::update_batches()) {
      with.step(batch);
      without.step(batch);
    }
    EXPECT_EQ(with.loss_scale_now(),
              1024);  // doubled after two good steps, halved after two bad ones
    for (const State& state : without.graph().states()) {
      const HostTensor &a = with.state(state.path), &b = without.state(state.path);
      for (std::int64_t i = 0; i < a.numel(); ++i)
        EXPECT_NEAR(a.at(i), b.at(i), 1e-12) << state.path;
    }
  }
}

TEST(LossScale, BeginsNoLowerThanItEnds) {
  EXPECT_TRUE(problems(LossScaleConfig{.on = true}).empty());
  const FieldProblems low = problems(LossScaleConfig{.on = true, .initial = 2, .least = 4});
  ASSERT_EQ(low.size(), 1u);
  EXPECT_EQ(low.texts()[0], "initial-loss-scale 2 is below min-loss-scale 4; raise it");
}

}  // namespace
}  // namespace tessera
