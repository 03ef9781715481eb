/// Pipelines on devices: stages as ranks, each with a plan of its own, give the numbers of one
/// device.

#include <gtest/gtest.h>

#include "tessera/base/index.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/grad.h"
#include "tessera/schedule/pipeline.h"
#include "train/staged_run.h"
#include "train/step_plan.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

struct Staged {
  const char* name;
  const char* family;
  PipelineStrategy pipeline;
  ParallelConfig parallel;  // of one stage
  OptimizerKind optimizer = OptimizerKind::AdamW;
};

std::ostream& operator<<(std::ostream& out, const Staged& c) { return out << c.name; }

ModelConfig staged_model(const Staged& c) { return tiny(c.family, 6); }

Graph staged_step(const Staged& c) {
  OptimizerConfig optimizer;
  optimizer.kind = c.optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  return train_step(task_of(staged_model(c)), optimizer, 24);
}

Strategy staged_strategy(const Staged& c) {
  Strategy out = strategy_of(c.parallel, BatchSplit::Cut, staged_model(c));
  out.pipeline = c.pipeline;
  return out;
}

std::vector<TaskInput> staged_inputs(const Staged& c) { return task_of(staged_model(c)).inputs; }

class StagedStep : public testing::TestWithParam<Staged> {};

TEST_P(StagedStep, EqualsOneDevice) {
  const Graph step = staged_step(GetParam());
  const std::vector<TaskInput> inputs = staged_inputs(GetParam());
  StagedRun staged(step, staged_strategy(GetParam()), inputs);
  staged.guard_bytes = 64;
  StagedRun one(step, one_device(1), inputs);
  staged.steps = one.steps = 10;
  expect_same_training(one(), staged());
}

TEST_P(StagedStep, TwoRunsAreTheSameBits) {
  const Graph step = staged_step(GetParam());
  const StagedRun staged(step, staged_strategy(GetParam()), staged_inputs(GetParam()));
  expect_same_bits(staged(), staged());
}

/// No place of a plan is for more micro-batches than the schedule holds, and as many more as a
/// message is received ahead: one, and several where it passes a chunk.
TEST_P(StagedStep, RingsAreAsDeepAsTheScheduleHolds) {
  const Staged& c = GetParam();
  const Graph step = staged_step(c);
  const StagedRun staged(step, staged_strategy(c));
  const Pipeline pipeline(make_schedule(
      c.pipeline.schedule, {c.pipeline.stages, c.pipeline.chunks, c.parallel.micro_batches}));
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (int stage = 0; stage < c.pipeline.stages; ++stage) {
    const Plan plan = staged.plan(*device, static_cast<int>(stage * c.parallel.devices));
    std::int64_t deepest = 1, alive = 1, ahead = 1;
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk) {
      if (pipeline.stage_of(chunk) == stage)
        alive =
            std::max(alive, pipeline.alive(chunk, RegionKind::Forward, pipeline.schedule().last()));
    }
    for (const RegionPlan& region : plan.program(kTrainProgram).regions) {
      for (const Call& call : region.calls) {
        if (in_loop(region.kind)) ahead = std::max<std::int64_t>(ahead, call.ahead);
        for (const auto* places : {&call.ins, &call.outs}) {
          for (const Place& place : *places) deepest = std::max(deepest, place.depth);
        }
      }
    }
    EXPECT_LE(deepest, alive + ahead) << "stage " << stage;
  }
}

ParallelConfig mesh(std::int64_t micro_batches, std::int64_t dp = 1, std::int64_t tp = 1,
                    int level = 0, std::int64_t cp = 1, bool sequence = false) {
  ParallelConfig out = zero(dp * tp * cp, level, micro_batches);
  out.tensor = tp;
  out.context = cp;
  out.sequence = sequence;
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, StagedStep,
    testing::Values(
        Staged{"Gpipe2", "gpt2", {2, 1, "gpipe"}, mesh(4)},
        Staged{"One2", "gpt2", {2, 1, "1f1b"}, mesh(4)},
        Staged{"One2Mb1", "llama", {2, 1, "1f1b"}, mesh(1)},
        Staged{"One3Mb2", "llama", {3, 1, "1f1b"}, mesh(2)},
        Staged{"One4Mb8", "gpt2", {4, 1, "1f1b"}, mesh(8)},
        Staged{"Interleaved2", "gpt2", {2, 2, "interleaved"}, mesh(4)},
        Staged{"Interleaved3Mb6", "llama", {3, 2, "interleaved"}, mesh(6)},
        Staged{"ZbH1", "gpt2", {3, 1, "zb-h1"}, mesh(6)},
        Staged{"ZbV2", "gpt2", {2, 2, "zb-v"}, mesh(4)},
        Staged{"ZbV4", "llama", {4, 2, "zb-v"}, mesh(8)},
        Staged{"Interleaved1", "gpt2", {1, 2, "interleaved"}, mesh(4)},
        Staged{"ZbV1", "gpt2", {1, 2, "zb-v"}, mesh(2)},
        Staged{"Dp2", "gpt2", {2, 1, "1f1b"}, mesh(3, 2)},
        Staged{"Tp2", "gpt2", {2, 1, "1f1b"}, mesh(4, 1, 2)},
        Staged{"Tp2Sp", "llama", {2, 1, "zb-h1"}, mesh(4, 1, 2, 0, 1, true)},
        Staged{"Cp2", "gpt2", {2, 2, "interleaved"}, mesh(4, 1, 1, 0, 2)},
        Staged{"Zero1", "gpt2", {3, 1, "1f1b"}, mesh(4, 2, 1, 1)},
        Staged{"Zero2", "llama", {2, 1, "gpipe"}, mesh(3, 2, 1, 2)},
        Staged{"Zero3", "gpt2", {2, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"BertGpipe2Dp2", "bert", {2, 1, "gpipe"}, mesh(3, 2)},
        Staged{"BertOne4Tp2Sp", "bert", {4, 1, "1f1b"}, mesh(8, 1, 2, 0, 1, true)},
        Staged{
            "BertMaskedInterleaved2Cp2", "bert-masked", {2, 2, "interleaved"}, mesh(4, 1, 1, 0, 2)},
        Staged{"BertMaskedZbV2Zero3", "bert-masked", {2, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"AlbertOne4Tp2Sp", "albert", {4, 1, "1f1b"}, mesh(8, 1, 2, 0, 1, true)},
        Staged{"AlbertZbV2Zero3", "albert", {2, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"RobertaOne3Zero1", "roberta", {3, 1, "1f1b"}, mesh(4, 2, 1, 1)},
        Staged{"Lamb", "gpt2", {3, 1, "1f1b"}, mesh(4), OptimizerKind::Lamb},
        Staged{"LambZero2Tp2", "llama", {2, 1, "zb-h1"}, mesh(2, 2, 2, 2), OptimizerKind::Lamb},
        Staged{"AdamWeightDecayZero2Tp2",
               "gpt2",
               {2, 1, "1f1b"},
               mesh(2, 2, 2, 2),
               OptimizerKind::AdamWeightDecay},
        Staged{"Sgd", "gpt2", {2, 2, "interleaved"}, mesh(2), OptimizerKind::Sgd},
        // All layers of the decoder read what the last of the encoder makes.
        Staged{"EncoderDecoder2", "transformer", {2, 1, "1f1b"}, mesh(4)},
        Staged{"EncoderDecoder4", "transformer", {4, 1, "1f1b"}, mesh(8)},
        Staged{"EncoderDecoder4Gpipe", "transformer", {4, 1, "gpipe"}, mesh(4)},
        Staged{"EncoderDecoder4ZbH1", "transformer", {4, 1, "zb-h1"}, mesh(6)},
        Staged{"EncoderDecoder2Interleaved3", "transformer", {2, 3, "interleaved"}, mesh(4)},
        Staged{"EncoderDecoder4Interleaved", "transformer", {4, 2, "interleaved"}, mesh(4)},
        Staged{"EncoderDecoder2ZbV", "transformer", {2, 2, "zb-v"}, mesh(4)},
        Staged{"EncoderDecoder4ZbV", "transformer", {4, 2, "zb-v"}, mesh(8)},
        Staged{"EncoderDecoder2Dp2Zero1", "transformer", {2, 1, "1f1b"}, mesh(3, 2, 1, 1)},
        Staged{"EncoderDecoder2Dp2Zero2", "transformer", {2, 1, "gpipe"}, mesh(3, 2, 1, 2)},
        Staged{"EncoderDecoder2Dp2Zero3", "transformer", {2, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"EncoderDecoder2Tp2Sp", "transformer", {2, 1, "zb-h1"}, mesh(4, 1, 2, 0, 1, true)},
        // And all layers of a stack what its positions are turned into.
        Staged{"T5One4", "t5", {4, 1, "1f1b"}, mesh(8)},
        Staged{"ElectraMaskedZbV2Zero3", "electra-masked", {2, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"T5ReluZbV4Zero3", "t5_relu", {4, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"T5Interleaved2Tp2Sp", "t5", {2, 2, "interleaved"}, mesh(4, 1, 2, 0, 1, true)},
        Staged{"BartZbV2", "bart", {2, 2, "zb-v"}, mesh(4)},
        Staged{"EncoderDecoderPost4", "transformer_post", {4, 1, "1f1b"}, mesh(8)},
        Staged{"EncoderDecoderPost4ZbVZero3", "transformer_post", {4, 2, "zb-v"}, mesh(4, 2, 1, 3)},
        Staged{"EncoderDecoder2Cp2", "transformer", {2, 2, "interleaved"}, mesh(4, 1, 1, 0, 2)}),
    [](const auto& info) { return std::string(info.param.name); });

/// Every later block reads what the first one makes, as the layers of a decoder read the encoder,
/// and the head reads the weight of the first.
enum class Passed { Value, View };
Graph reads_the_first(std::int64_t blocks, Passed passed = Passed::Value) {
  Builder builder;
  const Value ids = builder.batch("ids", {DType::I32, {24, 8}, {}});
  builder.batch("labels", {DType::I32, {24, 8}, {}});
  const auto weight = [&](const std::string& path) {
    return builder.state(path, {DType::F32, {8, 8}, {}}, Role::Parameter,
                         {Init::Kind::Normal, 0.4});
  };
  const Value x = cast(ids, DType::F32) * 0.1;
  Value first, h, tied;
  for (std::int64_t i = 0; i < blocks; ++i) {
    Scope layer(builder, text("layers.", i));
    const Value own = weight(text("layers.", i, ".weight"));
    const Value read = i < 2 || passed == Passed::Value ? first : reshape(first, {24, 8});
    h = gelu(matmul(i == 0 ? x : h + read, own), GeluForm::Tanh);
    if (i == 0) first = h, tied = own;
    // The second block hands on what it received, in another shape.
    if (i == 1 && passed == Passed::View) first = reshape(first, {24, 2, 4});
  }
  Value loss;
  {
    Scope head(builder, "head");
    const Value y = matmul(h + (passed == Passed::View ? reshape(first, {24, 8}) : first), tied,
                           {.trans_b = true});
    loss = sum_all(y * y);
  }
  std::vector<Value> weights;
  for (const State& state : builder.so_far().states()) weights.emplace_back(builder, state.value);
  const std::vector<Value> grads = gradients(loss, weights);
  builder.set_mark({"", Phase::Update, -1, {}});
  for (std::size_t i = 0; i < weights.size(); ++i)
    builder.next(weights[i], weights[i] - grads[i] * 1e-4);
  builder.output(Output::Kind::Metric, "loss", loss);
  return builder.finish();
}

TEST(SkippingMessages, EqualOneDevice) {
  const Graph step = reads_the_first(8);
  const Outcome one = StagedRun(step, one_device(1))();
  for (const std::string schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
    for (const int stages : {2, 4, 8}) {
      if (stages * find_schedule(schedule).least_chunks > 9) continue;  // there are nine blocks
      for (const std::int64_t micro_batches : {1, 4, 6, 12}) {
        SCOPED_TRACE(text(schedule, " p=", stages, " m=", micro_batches));
        Strategy strategy = one_device(micro_batches);
        strategy.pipeline = {stages, find_schedule(schedule).least_chunks, schedule};
        StagedRun staged(step, strategy);
        staged.guard_bytes = 64;
        expect_same_training(one, staged());
      }
    }
  }
}

/// A view of a received value is sent on: no later one may be received into its place meanwhile.
TEST(SkippingMessages, AViewOfWhatIsReceivedIsSentOn) {
  const Graph step = reads_the_first(8, Passed::View);
  const Outcome one = StagedRun(step, one_device(1))();
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1"}) {
    for (const int stages : {3, 4, 8}) {
      SCOPED_TRACE(text(schedule, " p=", stages));
      Strategy strategy = one_device(12);
      strategy.pipeline = {stages, 1, schedule};
      expect_same_training(one, StagedRun(step, strategy)());
    }
  }
}

}  // namespace
}  // namespace tessera
