/// Training steps without graph optimisation are those with it, but for rounding: on meshes and
/// pipelines, of every family. What it leaves out is left out.

#include <gtest/gtest.h>

#include "tessera/config/fields.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/passes/compute_in.h"
#include "train/memory_mesh.h"

namespace tessera {
namespace {

class GraphOptimization : public testing::TestWithParam<MemoryMesh> {};

/// Tolerances are those of meshes: sums in another order.
TEST_P(GraphOptimization, ChangesRoundingAlone) {
  const Graph step = GetParam().step();
  StagedRun run(step, GetParam().strategy(), GetParam().inputs());
  const Outcome with = run();
  run.optimize = Optimizations::all(false);
  run.guard_bytes = 64;
  expect_same_training(with, run());
}

INSTANTIATE_TEST_SUITE_P(Meshes, GraphOptimization, testing::ValuesIn(memory_meshes()),
                         memory_mesh_name);

/// Values that only share buffers, or are repeated, have the same bits; so has what a step leaves
/// where each op is a call of its own.
TEST(GraphOptimizationParts, ChangeNoBit) {
  struct Row {
    const char* name;
    bool Optimizations::*part;
  };
  for (const char* family :
       {"gpt2", "llama", "bert", "roberta", "albert", "transformer", "t5", "bart", "vit"}) {
    const MemoryMesh mesh = {family, family, {}, parallel_of(1, 1, 1, false, 0, 3)};
    const Graph step = mesh.step();
    const Outcome all = StagedRun(step, mesh.strategy(), mesh.inputs())();
    for (const Row& row : {Row{"simplify", &Optimizations::simplify},
                           Row{"shares_buffers", &Optimizations::shares_buffers}}) {
      SCOPED_TRACE(text(family, " without ", row.name));
      StagedRun run(step, mesh.strategy(), mesh.inputs());
      run.optimize.*row.part = false;
      expect_same_bits(all, run());
    }
  }
}

/// The norm is of the same sums, wherever they are computed. There is something to move where a
/// step is one micro-batch.
TEST(GraphOptimizationParts, SumsOfGradientsMoveAndChangeNoBit) {
  const auto counted = [](const Plan& plan) {
    int out = 0;
    for (const RegionPlan& region : plan.program(kTrainProgram).regions) {
      for (const Call& call : region.calls)
        out += in_loop(region.kind) && call.op == &kSumSquares ? 1 : 0;
    }
    return out;
  };
  const MemoryMesh meshes[] = {
      {"One", "gpt2", {}, parallel_of(1, 1, 1, false, 0, 1)},
      {"Tp2", "llama", {}, parallel_of(1, 2, 1, false, 0, 1)},
      {"TwoStages", "gpt2", {2, 1, "1f1b"}, parallel_of(1, 1, 1, false, 0, 1)},
      {"ZbH1", "gpt2", {2, 1, "zb-h1"}, parallel_of(1, 1, 1, false, 0, 1)},
      {"Dp2", "gpt2", {}, parallel_of(2, 1, 1, false, 0, 1)},
  };
  for (const MemoryMesh& mesh : meshes) {
    SCOPED_TRACE(mesh.name);
    const Graph step = mesh.step();
    StagedRun run(step, mesh.strategy(), mesh.inputs());
    const std::unique_ptr<Device> device = make_cpu_device(run.device);
    // Gradients of data parallel ranks come from transfers.
    EXPECT_EQ(counted(run.plan(*device, 0)) > 0, std::string_view(mesh.name) != "Dp2");
    const Outcome moved = run();
    run.optimize.advance = false;
    EXPECT_EQ(counted(run.plan(*device, 0)), 0);
    expect_same_bits(moved, run());
  }
}

/// A tied embedding, whose gradient is added up in another order, is the exception. In 16 bits,
/// values are rounded inside a fused op as they are between ops.
TEST(GraphOptimizationParts, FusionChangesNoBit) {
  struct Row {
    const char* family;
    DType dtype;
  };
  for (const Row& row :
       {Row{"gpt2", DType::F32}, Row{"llama", DType::F32}, Row{"gpt2", DType::BF16},
        Row{"gpt2", DType::F16}, Row{"llama", DType::BF16}}) {
    const char* const family = row.family;
    SCOPED_TRACE(text(family, ", ", row.dtype));
    ModelConfig model = tiny(family, 3);
    model.tied_head = false;
    OptimizerConfig optimizer;
    optimizer.schedule.kind = ScheduleKind::Constant;
    Graph step = train_step(task_of(model), optimizer, 12);
    if (is_16_bit(row.dtype)) step = compute_in(step, {.compute = row.dtype});
    const Strategy strategy =
        strategy_of(parallel_of(1, 1, 1, false, 0, 2), BatchSplit::Cut, model);
    StagedRun run(step, strategy, task_of(model).inputs);
    const Outcome fused = run();
    run.optimize.fuse = false;
    expect_same_bits(fused, run());
  }
}

/// Calls of the training step by op, and how often a result lies in the buffer of an operand.
struct Count {
  std::map<std::string_view, int> calls;
  int shared = 0;
};

Count count(const Plan& plan) {
  Count out;
  for (const RegionPlan& region : plan.program(kTrainProgram).regions) {
    for (const Call& call : region.calls) {
      if (call.op == nullptr || call.when != When::Always) continue;
      ++out.calls[call.op->name];
      for (const Place& result : call.outs) out.shared += std::ranges::count(call.ins, result);
    }
  }
  return out;
}

TEST(GraphOptimizationParts, AreLeftOut) {
  const MemoryMesh mesh = {"gpt2", "gpt2", {}, parallel_of(1, 1, 1, false, 0, 2)};
  const Graph step = mesh.step();
  StagedRun run(step, mesh.strategy(), mesh.inputs());
  run.device.pack_always = true;
  const std::unique_ptr<Device> device = make_cpu_device(run.device);
  const Count with = count(run.plan(*device, 0));
  run.optimize = Optimizations::all(false);
  const Count without = count(run.plan(*device, 0));
  for (const char* op : {"fused", "pack"}) {
    EXPECT_GT(with.calls.at(op), 0) << op;
    EXPECT_FALSE(without.calls.contains(op)) << op;
  }
  EXPECT_FALSE(with.calls.contains("reshape"));
  EXPECT_GT(without.calls.at("reshape"), 0) << "views are copied";
  EXPECT_GT(with.shared, 0);
  // The update writes states where they lie: there is no other place for them.
  EXPECT_LT(without.shared, with.shared);
}

/// The spelling of other trainers confirms what is so anyway.
TEST(GraphOptimizationFlag, HasTwoNames) {
  for (const char* name : {"graph-optimization", "onnx-runtime-training"}) {
    const FoundField found = find_field(name);
    ASSERT_NE(found.field, nullptr) << name;
    EXPECT_EQ(found.field->name, "graph-optimization");
    EXPECT_FALSE(found.negated);
  }
  EXPECT_TRUE(find_field("no-graph-optimization").negated);
  RunConfig config;
  EXPECT_EQ(record_of(config).at("graph-optimization"), "true");
  config.graph_optimization = false;
  EXPECT_EQ(record_of(config).at("graph-optimization"), "false");
}

}  // namespace
}  // namespace tessera
