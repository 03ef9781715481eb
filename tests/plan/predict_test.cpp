/// Predicted times of steps: programs made by hand, schedules whose formulas are known, and plans.

#include "tessera/plan/predict.h"

#include <gtest/gtest.h>

#include <numeric>

#include "machine_line.h"
#include "plan/priced_calls.h"
#include "tessera/ops/matmul.h"
#include "tessera/plan/compile.h"
#include "tessera/plan/price.h"

namespace tessera {
namespace {

using enum RegionKind;
using testing::kernel_call;
using testing::transfer_call;
using testing::wait_call;

/// A kernel of n operations takes n ms, a sum of n elements over two ranks n ms.
Machine playing_machine(bool overlap) {
  Machine out = parse_machine(
      "core=4e-6GB/s+0us rack=4e-6GB/s+0us copy=1e-3GB/s+0us "
      "compute=1e-6GFLOP/s memory=1GB/s");
  out.device.overlap = overlap;
  return out;
}
Call work(double ms) { return kernel_call(ms, 0); }
Call sum(std::int64_t ms, const char* axis, std::int32_t ticket) {
  return transfer_call(Collective::all_reduce(DType::F32, {ms}, Monoid::Sum, ""), {axis}, 2,
                       ticket);
}
Call at(When when, Call call) {
  call.when = when;
  return call;
}

/// Of one stage: so many forwards and backwards in turns.
Plan one_stage(std::vector<Call> begin, std::vector<Call> forward, std::vector<Call> backward,
               std::vector<Call> update, std::int64_t microbatches = 1) {
  Plan out;
  out.mesh = parse_mesh("dp=2@rack tp=2");
  ProgramPlan& program = out.programs.emplace_back();
  program.name = "step";
  program.microbatches = microbatches;
  program.regions = {{Begin, 0, std::move(begin)},
                     {Forward, 0, std::move(forward)},
                     {Backward, 0, std::move(backward)},
                     {Update, 0, std::move(update)}};
  program.actions = {{Begin, 0, 0}};
  for (std::int64_t k = 0; k < microbatches; ++k) {
    program.actions.push_back({Forward, 0, k});
    program.actions.push_back({Backward, 0, k});
  }
  program.actions.push_back({Update, 0, 0});
  NamedTensor rows{"rows", {DType::F32, {4}, {}}, {}, {8}, {}};
  rows.placement = Placement{parse_sharding("[dp]")};
  program.batch = {rows};
  return out;
}

Prediction played(const Plan& plan, const Machine& machine) {
  const std::vector<Plan> stages = {plan};
  const Plan* const one[] = {&stages[0]};
  return predict(stages, "step", pipeline_of(one, "step"), machine);
}
double exposed(const Prediction& p, TimePart part) {
  return 1e3 * p.exposed[static_cast<std::size_t>(part)];
}

TEST(Predict, TransfersRunBesideKernels) {
  const Plan plan =
      one_stage({}, {work(1), sum(3, "tp", 0), work(2), wait_call(0), work(4)}, {}, {});
  const Prediction beside = played(plan, playing_machine(true));
  EXPECT_NEAR(1e3 * beside.seconds, 8, 1e-9);
  EXPECT_NEAR(exposed(beside, TimePart::Inner), 1, 1e-9);
  EXPECT_NEAR(exposed(beside, TimePart::OtherKernels), 7, 1e-9);
  EXPECT_NEAR(1e3 * beside.whole[static_cast<std::size_t>(TimePart::Inner)], 3, 1e-9);
  EXPECT_NEAR(beside.bubble, 0, 1e-12);
  const Prediction after = played(plan, playing_machine(false));
  EXPECT_NEAR(1e3 * after.seconds, 10, 1e-9);
  EXPECT_NEAR(exposed(after, TimePart::Inner), 3, 1e-9);
  EXPECT_NEAR(after.seconds, step_seconds(plan.programs[0], plan.mesh, playing_machine(false)),
              1e-12);
}

TEST(Predict, OneLinkCarriesOneTransferAtATime) {
  const struct {
    const char *why, *first, *second;
    double ms;
  } cases[] = {{"one link", "tp", "tp", 7}, {"two links", "tp", "dp", 4}};
  for (const auto& c : cases) {
    const Plan plan = one_stage(
        {}, {sum(3, c.first, 0), sum(4, c.second, 1), work(1), wait_call(0), wait_call(1)}, {}, {});
    EXPECT_NEAR(1e3 * played(plan, playing_machine(true)).seconds, c.ms, 1e-9) << c.why;
  }
}

TEST(Predict, CopiesHaveTheirOwnLink) {
  Call copy;
  copy.copied_bytes = 3000;  // 3 ms
  copy.ticket = 1;
  copy.outs = {Place{Memory::Host}};
  const Plan plan =
      one_stage({}, {sum(3, "tp", 0), copy, work(1), wait_call(0), wait_call(1)}, {}, {});
  const Prediction p = played(plan, playing_machine(true));
  EXPECT_NEAR(1e3 * p.seconds, 3, 1e-9);
  EXPECT_NEAR(exposed(p, TimePart::Inner), 2, 1e-9);
  EXPECT_NEAR(1e3 * p.whole[static_cast<std::size_t>(TimePart::HostCopies)], 3, 1e-9);
}

/// Gradients are summed while the last backward goes on, and what is left of it during the update.
TEST(Predict, SumsOfGradientsStartInTheLastMicroBatch) {
  const Plan plan =
      one_stage({work(1)}, {work(2)}, {work(3), at(When::Last, sum(6, "dp", 0)), work(1)},
                {work(2), wait_call(0), work(1)}, 4);
  const Prediction p = played(plan, playing_machine(true));
  EXPECT_NEAR(1e3 * p.seconds, 1 + 4 * 6 + 2 + 3 + 1, 1e-9);
  EXPECT_NEAR(exposed(p, TimePart::Data), 3, 1e-9);
  EXPECT_NEAR(1e3 * p.whole[static_cast<std::size_t>(TimePart::Data)], 6, 1e-9);
  ASSERT_EQ(p.regions.size(), 4u);
  EXPECT_NEAR(1e3 * p.regions[2].seconds, 4, 1e-9);
}

TEST(Predict, WeightsMultiplyTheirParts) {
  Machine m = playing_machine(false);
  m.weights = {2, 3, 5, 7};
  const Collective gather = Collective::all_gather(DType::F32, {20}, 0, "");
  const Plan plan = one_stage({},
                              {work(1), sum(1, "tp", 0), wait_call(0), sum(1, "dp", 1),
                               wait_call(1), transfer_call(gather, {"tp"}, 2, 2), wait_call(2)},
                              {}, {});
  const Prediction p = played(plan, m);
  EXPECT_NEAR(exposed(p, TimePart::OtherKernels), 2, 1e-9);
  EXPECT_NEAR(exposed(p, TimePart::Inner), 3, 1e-9);
  EXPECT_NEAR(exposed(p, TimePart::Inter), 50, 1e-9);
  EXPECT_NEAR(exposed(p, TimePart::Data), 7, 1e-9);
  EXPECT_NEAR(1e3 * p.seconds, 62, 1e-9);
}

/// Stages that all take as long: F, B and W of a chunk take 2, 2 and 2 ms, BW takes 4.
std::vector<Plan> equal_stages(const Schedule& schedule, std::int64_t microbatches) {
  std::vector<Plan> out;
  for (const Actions& actions : schedule.stages) {
    Plan plan = one_stage({}, {}, {}, {}, microbatches);
    ProgramPlan& program = plan.programs[0];
    program.actions = actions;
    program.regions = {{Begin, 0, {}}};
    for (const Action& action : actions) {
      if (action.microbatch > 0) continue;
      const bool both = action.region == Backward && !schedule.splits;
      program.regions.push_back({action.region, action.chunk, {work(both ? 4 : 2)}});
    }
    program.regions.push_back({Update, 0, {}});
    out.push_back(std::move(plan));
  }
  return out;
}

TEST(Predict, BubblesOfSchedules) {
  const struct {
    const char* schedule;
    int stages, chunks;
    std::int64_t microbatches;
    double bubble;  // ms
  } cases[] = {
      {"gpipe", 4, 1, 8, 3 * 6},       {"1f1b", 4, 1, 8, 3 * 6},         {"1f1b", 8, 1, 16, 7 * 6},
      {"interleaved", 4, 2, 8, 3 * 6}, {"interleaved", 4, 4, 16, 3 * 6}, {"zb-h1", 4, 1, 8, 3 * 2},
      {"zb-h1", 8, 1, 32, 7 * 2},
  };
  for (const auto& c : cases) {
    const Schedule schedule = make_schedule(c.schedule, {c.stages, c.chunks, c.microbatches});
    const std::vector<Plan> plans = equal_stages(schedule, c.microbatches);
    const Prediction p = predict(plans, "step", Pipeline(schedule), playing_machine(false));
    EXPECT_NEAR(1e3 * p.bubble, c.bubble, 1e-9) << c.schedule << " " << c.stages;
    const double busy = 6.0 * c.chunks * static_cast<double>(c.microbatches);
    EXPECT_NEAR(1e3 * p.seconds, busy + c.bubble, 1e-9) << c.schedule;
  }
}

/// A stage that is told something in the update waits for all, though its own loop ends early.
TEST(Predict, StagesMeetInTheUpdate) {
  const Schedule schedule = make_schedule("gpipe", {2, 1, 2});
  std::vector<Plan> plans = equal_stages(schedule, 2);
  Call receive = transfer_call(Collective::recv(DType::F32, {1}, 0, ""), {"pp"}, 2, 7);
  receive.ins = {}, receive.outs = {Place{}};
  plans[1].programs[0].regions.back().calls = {work(1), receive, wait_call(7), work(5)};
  const Prediction p = predict(plans, "step", Pipeline(schedule), playing_machine(false));
  // The first stage ends its last backward at 2 + 2 + 2 + 4 + 4 + 4 = 18, the other 4 earlier.
  EXPECT_NEAR(1e3 * p.seconds, 18 + 5, 1e-9);
}

Graph wide_layers(int n) {
  Builder b;
  Value x = b.batch("x", {DType::F32, {32, 64}, {}}), loss;
  for (int i = 0; i < n; ++i) {
    const Scope layer(b, text("layers.", i));
    const Value w =
        b.state(text("layers.", i, ".w"), {DType::F32, {64, 64}, {}}, Role::Parameter, {});
    x = matmul(x, w);
  }
  b.output(Output::Kind::Metric, "loss", einsum("m k, m k -> ", x, x, {}));
  return b.finish();
}

/// Of plans: the play of the schedule between begin and update; no slower on a better machine.
TEST(Predict, OfPlans) {
  Strategy strategy = one_device(4);
  strategy.pipeline = {2, 1, "1f1b"};
  const std::vector<Plan> plans =
      compile_stages({{"step", wide_layers(4), strategy}}, *make_cpu_device({1, -1}));
  std::vector<const Plan*> stages;
  for (const Plan& plan : plans) stages.push_back(&plan);
  const Pipeline pipeline = pipeline_of(stages, "step");
  EXPECT_EQ(pipeline.schedule(), make_schedule("1f1b", {2, 1, 4}));
  const Machine slow = parse_machine("core=2GB/s+10us compute=1GFLOP/s memory=4GB/s");
  const Prediction p = predict(plans, "step", pipeline, slow);
  EXPECT_GE(p.seconds, makespan(pipeline.play(prices_of(stages, "step", pipeline, slow))));
  EXPECT_NEAR(std::accumulate(p.exposed.begin(), p.exposed.end(), p.bubble), p.seconds, 1e-12);
  EXPECT_GT(exposed(p, TimePart::Products), 0);
  EXPECT_GT(exposed(p, TimePart::Messages), 0);
  for (const char* better : {"core=4GB/s+10us compute=1GFLOP/s memory=4GB/s",
                             "core=2GB/s+5us compute=1GFLOP/s memory=4GB/s",
                             "core=2GB/s+10us compute=2GFLOP/s memory=4GB/s"})
    EXPECT_LT(predict(plans, "step", pipeline, parse_machine(better)).seconds, p.seconds) << better;
}

}  // namespace
}  // namespace tessera
