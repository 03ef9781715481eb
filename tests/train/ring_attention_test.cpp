/// Context parallel training with rings of keys and values computes what one device computes: all
/// ranks interpreted in f64 with dropout, and run by the device's kernels.

#include "tessera/passes/ring_attention.h"

#include <gtest/gtest.h>

#include "tessera/ops/attention.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/recompute.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"
#include "train/staged_run.h"

namespace tessera {
namespace {

/// Halves of any length, and none.
constexpr RingLimits kZigzag = {1}, kPlain = {1 << 20};

struct RingCase {
  const char* name;
  const char* family;
  ParallelConfig parallel;
  bool documents = false;  // tokens see their own document only

  ModelConfig model() const {
    ModelConfig out = tiny(family);
    out.reset_attention = documents;
    return out;
  }
  Strategy strategy(KeyExchange keys = KeyExchange::Ring) const {
    ParallelConfig of = parallel;
    of.keys = keys;
    return strategy_of(of, BatchSplit::Cut, model());
  }
};

std::ostream& operator<<(std::ostream& out, const RingCase& c) { return out << c.name; }

class RingStep : public testing::TestWithParam<RingCase> {
 protected:
  Program ringed(const Graph& graph, const RingLimits& limits) const {
    const Program whole = partition(propagate(add_uses(graph), GetParam().strategy()));
    return ring_attention(whole, limits);
  }
  void expect_equal(const OneDevice& one, const Graph& graph) const {
    for (const RingLimits& limits : {kZigzag, kPlain})
      EXPECT_EQ(one.wrong(fuse(ringed(graph, limits))), "") << limits.least_half;
  }
};

/// No keys are gathered, but for a mask's sake.
TEST_P(RingStep, EqualsOneDevice) {
  const OneDevice one(task_of(GetParam().model()));
  const Graph graph = simplify(one.graph);
  expect_equal(one, graph);
  for (const Region& region : ringed(graph, kPlain).regions) {
    for (const Node& node : region.graph.nodes()) {
      if (node.op != &kAttention && node.op != &kAttentionGrad) continue;
      const Node& keys = region.graph.node(node.inputs[node.op == &kAttention ? 1 : 2].node);
      EXPECT_NE(keys.op, &kAllGather) << text(node.block);
    }
  }
}

TEST_P(RingStep, InSixteenBitsEqualsOneDevice) {
  const OneDevice one(task_of(GetParam().model()), {}, Precision{});
  expect_equal(one, simplify(one.graph));
}

TEST_P(RingStep, RecomputedEqualsOneDevice) {
  const OneDevice one(task_of(GetParam().model()));
  expect_equal(one, recompute(simplify(one.graph), {{"*", Recompute::Full}}));
}

/// In f32, with what the plan says of bytes and calls.
TEST_P(RingStep, TrainsAsGathered) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Task task = task_of(GetParam().model());
  const Graph step = train_step(task, optimizer, 12);
  StagedRun gathered(step, GetParam().strategy(KeyExchange::Gather), task.inputs);
  const Outcome whole = gathered();
  for (const RingLimits& limits : {kZigzag, kPlain}) {
    SCOPED_TRACE(limits.least_half);
    StagedRun run(step, GetParam().strategy(), task.inputs);
    run.rings = limits, run.guard_bytes = 64;
    expect_same_training(whole, run());
  }
}

ParallelConfig context(std::int64_t n) { return parallel_of(1, 1, n, false, 0, 1); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, RingStep,
    testing::Values(RingCase{"Cp2", "gpt2", context(2)}, RingCase{"Cp4", "gpt2", context(4)},
                    RingCase{"LlamaCp4", "llama", context(4)},
                    RingCase{"Cp2Tp2Dp2Zero3", "llama", parallel_of(2, 2, 2, true, 3, 2)},
                    RingCase{"WindowCp2", "mistral", context(2)},
                    RingCase{"WindowCp4", "mistral", context(4)},
                    RingCase{"SlopesCp4", "bloom", context(4)},
                    RingCase{"CapsCp2", "gemma2", context(2)},
                    RingCase{"WindowsOnBothSidesCp4", "modernbert", context(4)},
                    RingCase{"BertCp2", "bert", context(2)},
                    RingCase{"EncoderDecoderCp2", "transformer", context(2)},
                    RingCase{"DocumentsCp4", "gpt2", context(4), true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tessera
