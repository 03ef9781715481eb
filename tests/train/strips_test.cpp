/// Strips: a step that computes its logits in strips is the same step, on meshes and pipelines, in
/// 16 bits and with micro-batches; and it takes less memory. strips_*.txt in tests/passes/graphs
/// show what the pass does.

#include <gtest/gtest.h>

#include <set>

#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/passes/strips.h"
#include "train/memory_mesh.h"

namespace tessera {
namespace {

/// Any value, in strips of any height.
constexpr StripLimits kAny = {1, 1, 3};

/// Of a vocabulary that makes logits the largest values of a tiny model.
ModelConfig wide(const std::string& family, std::int64_t layers) {
  ModelConfig out = tiny(family, layers);
  out.vocabulary = 67;
  return out;
}

Graph step_of(const ModelConfig& model, OptimizerKind kind = OptimizerKind::AdamW) {
  OptimizerConfig optimizer;
  optimizer.kind = kind;
  optimizer.schedule.kind = ScheduleKind::Constant;
  return train_step(task_of(model), optimizer, 12);
}

/// Calls of cross_entropy in the training step of the last rank, which has the end of the model.
std::int64_t num_losses(const StagedRun& run, const Strategy& strategy) {
  const std::unique_ptr<Device> device = make_cpu_device(run.device);
  const auto last = static_cast<int>(strategy.pipeline.stages * strategy.mesh.ranks()) - 1;
  const Plan plan = run.plan(*device, last);
  std::int64_t out = 0;
  for (const RegionPlan& region : plan.program(kTrainProgram).regions)
    out += std::ranges::count_if(region.calls,
                                 [](const Call& call) { return call.op->name == "cross_entropy"; });
  return out;
}

/// Those whose vocabulary or rows are split, that compute gradients of weights later, or where the
/// gathered weight takes what strips would save, keep their logits.
const std::set<std::string_view> kWithout = {"Dp3Zero3Lamb",
                                             "T5One4Zero3",
                                             "EncoderDecoderOne4Zero3",
                                             "MixtralEp2Zero3",
                                             "MixtralOne2Ep2",
                                             "DeepseekV3Ep2Tp2Sp",
                                             "Tp2",
                                             "Tp2Sp",
                                             "Cp2Tp2Dp2Zero3",
                                             "One2Tp2",
                                             "ZbH12Zero3",
                                             "ZbH13",
                                             "ZbV2Zero1",
                                             "ZbV2Sp",
                                             "BertDp2Tp2SpZero3",
                                             "BertMaskedZbV2",
                                             "AlbertDp2Tp2SpZero3",
                                             "AlbertMaskedZbV2",
                                             "RobertaTp2Sp",
                                             "EncoderDecoderTp2Sp",
                                             "T5Tp2Sp",
                                             "BartZbV2",
                                             "EncoderDecoderZbV2"};

class StripsOnMeshes : public testing::TestWithParam<MemoryMesh> {};

TEST_P(StripsOnMeshes, ChangeRoundingAlone) {
  const MemoryMesh& mesh = GetParam();
  const ModelConfig model = wide(mesh.family, 4);
  const Graph step = step_of(model, mesh.optimizer);
  Strategy strategy = strategy_of(mesh.parallel, BatchSplit::Cut, model);
  strategy.pipeline = mesh.pipeline;
  StagedRun run(step, strategy, task_of(model).inputs);
  run.guard_bytes = 64;
  const Outcome whole = run();
  const std::int64_t losses = num_losses(run, strategy);
  run.strips = kAny;
  EXPECT_EQ(num_losses(run, strategy) > losses, !kWithout.contains(mesh.name));
  expect_same_training(whole, run());
}

INSTANTIATE_TEST_SUITE_P(Meshes, StripsOnMeshes, testing::ValuesIn(memory_meshes()),
                         memory_mesh_name);

struct ExactCase {
  const char* name;
  const char* family;
  std::int64_t micro_batches;
  std::optional<Precision> precision;
};

class StripsExactly : public testing::TestWithParam<ExactCase> {};

/// Interpreted in f64, with all gradients.
TEST_P(StripsExactly, EqualTheWholeStep) {
  const ExactCase& c = GetParam();
  const OneDevice one(task_of(wide(c.family, 2)), {}, c.precision);
  const Strategy strategy = one_device(c.micro_batches);
  const Program whole = partition(propagate(add_uses(simplify(one.graph)), strategy));
  const Program cut = strips(whole, kAny);
  EXPECT_FALSE(cut.graph(RegionKind::Backward) == whole.graph(RegionKind::Backward));
  EXPECT_EQ(one.wrong(cut), "");
  EXPECT_EQ(one.wrong(fuse(cut)), "");
}

INSTANTIATE_TEST_SUITE_P(
    Steps, StripsExactly,
    testing::Values(ExactCase{"Gpt2", "gpt2", 1, {}}, ExactCase{"Gpt2Mb3", "gpt2", 3, {}},
                    ExactCase{"Gpt2Bf16", "gpt2", 2, Precision{}},
                    ExactCase{"Llama", "llama", 1, {}},
                    ExactCase{"Gpt2F16Sums", "gpt2", 1, Precision{DType::F16, DType::F16}},
                    ExactCase{"Bert", "bert", 1, {}},
                    ExactCase{"BertMb2Bf16", "bert", 2, Precision{}},
                    ExactCase{"BertF16Sums", "bert", 1, Precision{DType::F16, DType::F16}},
                    ExactCase{"BertMasked", "bert-masked", 1, {}}, ExactCase{"T5", "t5", 2, {}}),
    [](const auto& info) { return std::string(info.param.name); });

/// In bf16 on a device: losses of the first step have the same bits, and later ones differ as sums
/// of gradients in another order make them.
TEST(Strips, InSixteenBits) {
  const ModelConfig model = wide("gpt2", 2);
  const Strategy strategy = strategy_of(parallel_of(1, 1, 1, false, 0, 2), BatchSplit::Cut, model);
  const Graph step = compute_in(step_of(model), {});
  StagedRun run(step, strategy, task_of(model).inputs);
  const Outcome whole = run();
  run.strips = kAny;
  const Outcome cut = run();
  const std::vector<double>&before = whole.metrics.at("loss"), &after = cut.metrics.at("loss");
  EXPECT_EQ(after[0], before[0]);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(after[i], before[i], 0x1p-8 * before[i]) << "step " << i + 1;
}

/// Gradients in 16 bits are added up over strips in f32, and rounded once: as of the whole.
TEST(Strips, GradientsInSixteenBitsAreRoundedOnce) {
  const ModelConfig model = wide("gpt2", 2);
  const Strategy strategy = strategy_of(parallel_of(1, 1, 1, false, 0, 1), BatchSplit::Cut, model);
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const Graph step = compute_in(step_of(model), {dtype, dtype});
    StagedRun run(step, strategy, task_of(model).inputs);
    const std::int64_t losses = num_losses(run, strategy);
    const Outcome whole = run();
    run.strips = kAny;
    EXPECT_GT(num_losses(run, strategy), losses) << to_text(dtype);
    const Outcome cut = run();
    const std::vector<double>&before = whole.metrics.at("loss"), &after = cut.metrics.at("loss");
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(after[i], before[i], 0x1p-8 * before[i]) << to_text(dtype) << ", step " << i + 1;
  }
}

/// Where the f32 sum of a gradient would take what strips of logits save, nothing is cut: of a
/// quarter of the rows in a micro-batch, logits take a quarter.
TEST(Strips, AreLeftOutWhereWideSumsTakeAsMuch) {
  const OneDevice one(task_of(wide("gpt2", 2)), {}, Precision{DType::F16, DType::F16});
  for (const std::int64_t micro_batches : {1, 4}) {
    const Program whole =
        partition(propagate(add_uses(simplify(one.graph)), one_device(micro_batches)));
    const bool cut =
        !(strips(whole, kAny).graph(RegionKind::Backward) == whole.graph(RegionKind::Backward));
    EXPECT_EQ(cut, micro_batches == 1) << micro_batches;
  }
}

/// Where rows just suffice for two strips in f32, logits of 16 bits stay whole.
TEST(Strips, InSixteenBitsHaveTwiceAsManyRows) {
  ModelConfig model = wide("gpt2", 2);
  const std::int64_t rows = 12 * model.context;  // of the batch
  const StripLimits limits = {1, rows / 2, 3};
  const Strategy strategy = one_device(1);
  const auto is_cut = [&](const std::optional<Precision>& precision) {
    const OneDevice one(task_of(model), {}, precision);
    const Program whole = partition(propagate(add_uses(simplify(one.graph)), strategy));
    return !(strips(whole, limits).graph(RegionKind::Backward) ==
             whole.graph(RegionKind::Backward));
  };
  EXPECT_TRUE(is_cut(std::nullopt));
  EXPECT_FALSE(is_cut(Precision{}));
}

/// Four strips of 256 rows: three quarters of the logits are never there. Smaller ones stay whole.
TEST(Strips, SaveMemoryWhereLogitsAreLarge) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  ModelConfig model = tiny("gpt2", 2);
  model.context = 256;
  CompileOptions whole;
  whole.optimize.strips = false;
  const auto saved = [&](std::int64_t vocabulary) {
    model.vocabulary = vocabulary;
    return step_plan(model, 4, {}, *device, whole).peak_bytes() -
           step_plan(model, 4, {}, *device).peak_bytes();
  };
  const std::int64_t logits = std::int64_t{4} * 256 * 30000 * 4;
  EXPECT_GT(saved(30000), logits * 7 / 10);
  EXPECT_LT(saved(30000), logits * 3 / 4 + (1 << 20));
  EXPECT_EQ(saved(2000), 0);
}

/// In 16 bits strips hold a copy of the weight beside its gradient: logits are cut where they save
/// more than the copy takes, or where micro-batches need both anyway; a step takes no more memory.
TEST(Strips, AreLeftOutWhereACopyTakesAsMuch) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  ModelConfig model = tiny("gpt2", 2);
  model.vocabulary = 30000;
  const auto saved = [&](std::int64_t context, std::int64_t width, std::int64_t micro_batches) {
    model.context = context, model.width = width;
    CompileOptions options;
    const auto peak = [&](bool strips) {
      options.optimize.strips = strips;
      const Graph step = compute_in(step_of(model), {});
      return compile({{kTrainProgram, step, one_device(micro_batches)}}, *device, options)
          .peak_bytes();
    };
    return peak(false) - peak(true);
  };
  EXPECT_GT(saved(96, 64, 1), 0);
  EXPECT_EQ(saved(96, 768, 1), 0);
  EXPECT_GT(saved(192, 768, 1), 0);
  EXPECT_GT(saved(192, 768, 2), 0);
}

}  // namespace
}  // namespace tessera
