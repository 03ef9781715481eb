/// A model whose later layers read earlier ones across several stages, as encoders and decoders do,
/// gives the numbers of one device. With other schedules it waits for ever: transports move a
/// message only while its receiver waits for it, although it is posted.

#include <gtest/gtest.h>

#include "tessera/comm/local.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/grad.h"
#include "tessera/plan/compile.h"
#include "tessera/train/crew.h"
#include "tessera/train/step.h"

namespace tessera {
namespace {

constexpr int kSkipLayers = 12;
constexpr std::int64_t kSkipRows = 16, kSkipWidth = 8;

/// Layer i of the second half adds what layer n - 1 - i results in.
Graph skipping_step() {
  Builder builder;
  Value x = builder.batch("x", {DType::F32, {kSkipRows, kSkipWidth}, {}});
  std::vector<Value> results;
  Value loss;
  for (int i = 0; i < kSkipLayers; ++i) {
    const Scope layer(builder, text("layers.", i));
    if (i >= kSkipLayers / 2) x = x + results[static_cast<std::size_t>(kSkipLayers - 1 - i)];
    x = gelu(linear(x, "up", kSkipWidth), GeluForm::Tanh);
    results.push_back(x);
    if (i + 1 == kSkipLayers) loss = sum_all(x * x);
  }
  std::vector<Value> weights;
  for (const State& state : builder.so_far().states()) weights.emplace_back(builder, state.value);
  const std::vector<Value> grads = gradients(loss, weights);
  builder.set_mark({"", Phase::Update, -1, {}});
  for (std::size_t i = 0; i < weights.size(); ++i)
    builder.next(weights[i], weights[i] - grads[i] * 1e-3);
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}

Plan skipping_plan(const PipelineStrategy& pipeline, std::int64_t microbatches, Device& device,
                   int rank) {
  const Graph step = skipping_step();
  Strategy whole = one_device(1), cut = one_device(microbatches);
  whole.pipeline = cut.pipeline = pipeline;
  CompileOptions options;
  options.rank = rank;
  options.guard_bytes = 64;
  return compile({{"init", initialise(step), whole}, {"step", step, cut}}, device, options);
}

std::vector<double> losses(Crew& crew) {
  std::vector<double> out;
  crew.run("init");
  for (int step = 0; step < 3; ++step) {
    crew.run("step", [&](BatchInputs& batch) {
      float value = -1;
      for (float& x : batch.fill<float>("x")) x = value = -0.9F * value + 0.1F;
    });
    out.push_back(crew.executor().scalar("step", "loss"));
  }
  crew.dismiss();
  return out;
}

std::vector<double> losses_on(const PipelineStrategy& pipeline, std::int64_t microbatches) {
  std::vector<double> out;
  if (pipeline.stages == 1) {
    const auto device = make_cpu_device({1, -1});
    Crew crew(skipping_plan(pipeline, microbatches, *device, 0), *device);
    return losses(crew);
  }
  run_ranks(pipeline.stages, [&](Communicator& world) {
    const auto device = make_cpu_device({1, -1});
    Crew crew(skipping_plan(pipeline, microbatches, *device, world.rank()), *device, &world);
    if (world.rank() > 0) return crew.follow();
    out = losses(crew);
  });
  return out;
}

TEST(StageSkip, LongMessagesGiveTheNumbersOfOneDevice) {
  const std::vector<double> one = losses_on({}, 1);
  EXPECT_LT(one[2], one[0]);
  for (const PipelineStrategy& pipeline :
       {PipelineStrategy{2, 1, "1f1b"}, PipelineStrategy{4, 1, "gpipe"},
        PipelineStrategy{8, 1, "gpipe"}, PipelineStrategy{2, 2, "zb-v"}}) {
    for (const std::int64_t microbatches : {8, 16}) {
      SCOPED_TRACE(text(pipeline.schedule, ", ", pipeline.stages, " stages, ", microbatches,
                        " micro-batches"));
      const std::vector<double> staged = losses_on(pipeline, microbatches);
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(staged[i], one[i], 1e-5 * one[i]) << "step " << i;
    }
  }
}

}  // namespace
}  // namespace tessera
