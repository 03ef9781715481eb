/// What a mesh costs: the collectives that the compiler inserts into a block, asserted as text by
/// compiling alone, at three sizes: one where all costs are alike, one where activations are much
/// smaller than weights, so that moving weights looks cheap, and a common one.

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tessera/ir/blocks.h"
#include "tessera/models/parallel.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/train/step.h"

namespace tessera {
namespace {

struct Size {
  const char* name;
  std::int64_t batch, context, width, heads, vocabulary;
};
constexpr Size kSizes[] = {{"tiny", 8, 8, 16, 4, 40},
                           {"short and wide", 2, 128, 1024, 16, 32000},
                           {"big", 8, 1024, 1024, 16, 32000}};

ModelConfig model_of(const std::string& family, const Size& size) {
  ModelConfig c;
  c.family = family;
  c.layers = 3;
  c.heads = size.heads;
  c.kv_heads = family == "llama" ? size.heads / 2 : 0;
  c.width = size.width;
  c.context = size.context;
  c.vocabulary = size.vocabulary;
  c.dropout = family == "gpt2" ? 0.1 : 0;
  return c;
}

Program program_of(const std::string& family, const Size& size, const ParallelConfig& parallel) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Graph step = train_step(model_of(family, size), optimizer, size.batch, size.context);
  return partition(propagate(add_uses(simplify(merge_pads(step))), strategy_of(parallel)));
}

/// Calls `visit(region, node, operand)` for each collective of `block`.
using Visit = std::function<void(RegionKind region, const Node& node, const Result& operand)>;
void each_collective(const Program& program, std::string_view block, const Visit& visit) {
  for (const Region& region : program.regions) {
    for (const Node& node : region.graph.nodes()) {
      if (node.op->traits.exchanges && block_of(node.block) == block)
        visit(region.kind, node, region.graph.result(node.inputs[0]));
    }
  }
}

/// "forward all_reduce tp activations x2; ...". Vectors, and what is smaller than two rows of the
/// residual stream, are left out.
std::string collectives(const Program& program, std::string_view block, const Size& size) {
  std::map<std::tuple<RegionKind, std::string, std::string, std::string>, int> calls;
  each_collective(program, block, [&](RegionKind region, const Node& node, const Result& operand) {
    if (operand.logical.ndim() < 2 || operand.type.numel() < 2 * size.width) return;
    const auto axes = static_cast<std::size_t>(node.op->attrs.find("axes"));
    const bool rows = operand.logical == Shape{size.batch, size.context, size.width};
    ++calls[{region, std::string(node.op->name), std::get<std::string>(node.attrs[axes]),
             rows                          ? "activations"
             : operand.logical.ndim() == 2 ? "weights"
                                           : text(operand.logical)}];
  });
  std::string out;
  for (const auto& [what, n] : calls) {
    const auto& [region, op, axes, value] = what;
    out += text(out.empty() ? "" : "; ", to_text(region), " ", op, " ", axes, " ", value, " x", n);
  }
  return out;
}

ParallelConfig parallel(std::int64_t dp, std::int64_t tp, bool sequence = false, int zero = 0) {
  return {.devices = dp * tp,
          .tensor = tp,
          .sequence = sequence,
          .shard_optimizer = zero > 0,
          .shard_gradients = zero > 1,
          .shard_parameters = zero > 2};
}

/// Each family, at each size, in each block.
void expect_in_every_block(const ParallelConfig& mesh, const std::string& gpt2,
                           const std::string& llama) {
  for (const Size& size : kSizes) {
    for (const std::string family : {"gpt2", "llama"}) {
      const Program program = program_of(family, size, mesh);
      for (const char* block : {"layers.0", "layers.1", "layers.2"}) {
        EXPECT_EQ(collectives(program, block, size), family == "gpt2" ? gpt2 : llama)
            << size.name << " " << family << " " << block;
      }
    }
  }
}

constexpr const char* kTensor =
    "forward all_reduce tp activations x2; backward all_reduce tp activations x2";
// Two of the four gathers of the backward pass bring back the inputs of first products, for the
// gradients of their weights.
constexpr const char* kSequence =
    "forward all_gather tp activations x2; forward reduce_scatter tp activations x2; "
    "backward all_gather tp activations x4; backward reduce_scatter tp activations x2";

TEST(Collectives, TensorParallelTakesTwoAllReducesForwardAndTwoBackward) {
  expect_in_every_block(parallel(1, 2), kTensor, kTensor);
}

TEST(Collectives, SequenceParallelGathersAndScattersInstead) {
  expect_in_every_block(parallel(1, 2, true), kSequence, kSequence);
}

TEST(Collectives, ManyTensorRanksTakeNoOthers) {
  for (const Size& size : kSizes) {
    EXPECT_EQ(collectives(program_of("gpt2", size, parallel(1, 4)), "layers.1", size), kTensor);
    EXPECT_EQ(collectives(program_of("gpt2", size, parallel(1, 4, true)), "layers.1", size),
              kSequence);
  }
}

/// Weights per block: GPT-2 has four, LLaMA five.
TEST(Collectives, DataParallelReducesTheGradientOfEachWeight) {
  expect_in_every_block(parallel(2, 1), "backward all_reduce dp weights x4",
                        "backward all_reduce dp weights x5");
}

TEST(Collectives, Zero1ScattersGradientsAndGathersWeights) {
  for (const int level : {1, 2}) {
    expect_in_every_block(parallel(2, 1, false, level),
                          "backward reduce_scatter dp weights x4; update all_gather dp weights x4",
                          "backward reduce_scatter dp weights x5; update all_gather dp weights x5");
  }
}

TEST(Collectives, Zero3GathersWeightsForwardAndBackward) {
  expect_in_every_block(parallel(2, 1, false, 3),
                        "forward all_gather dp weights x4; backward all_gather dp weights x4; "
                        "backward reduce_scatter dp weights x4",
                        "forward all_gather dp weights x5; backward all_gather dp weights x5; "
                        "backward reduce_scatter dp weights x5");
}

/// Another axis changes what is local, not what is cheapest.
TEST(Collectives, AxesDoNotDisturbEachOther) {
  expect_in_every_block(parallel(2, 2),
                        "forward all_reduce tp activations x2; backward all_reduce dp weights x4; "
                        "backward all_reduce tp activations x2",
                        "forward all_reduce tp activations x2; backward all_reduce dp weights x5; "
                        "backward all_reduce tp activations x2");
  const auto both = [](int weights) {
    return text("forward all_gather tp activations x2; forward reduce_scatter tp activations x2; ",
                "backward all_gather tp activations x4; backward reduce_scatter dp weights x",
                weights, "; backward reduce_scatter tp activations x2; ",
                "update all_gather dp weights x", weights);
  };
  expect_in_every_block(parallel(2, 2, true, 1), both(4), both(5));
}

/// Vectors included: as many all-reduces as the block has parameters, of as many numbers.
TEST(Collectives, DataParallelReducesEachParameterOnce) {
  for (const Size& size : kSizes) {
    for (const std::string family : {"gpt2", "llama"}) {
      const Program program = program_of(family, size, parallel(2, 1));
      std::int64_t parameters = 0, numbers = 0, calls = 0, moved = 0;
      const Graph& update = program.graph(RegionKind::Update);
      for (const State& state : update.states()) {
        if (state.role != Role::Parameter || block_of(state.path) != "layers.1") continue;
        ++parameters;
        numbers += update.type(state.value).numel();
      }
      each_collective(program, "layers.1", [&](RegionKind, const Node& node, const Result& value) {
        EXPECT_EQ(node.op, &kAllReduce);
        ++calls;
        moved += value.type.numel();
      });
      EXPECT_EQ(calls, parameters) << size.name << " " << family;
      EXPECT_EQ(moved, numbers) << size.name << " " << family;
      EXPECT_GE(parameters, 7);
    }
  }
}

/// Bytes that one rank sends for the weights of a block, one micro-batch.
double sent_for_weights(const Program& program, std::int64_t ranks) {
  double out = 0;
  each_collective(program, "layers.1", [&](RegionKind, const Node& node, const Result& value) {
    if (value.logical.ndim() < 2) return;
    const auto n = static_cast<double>(ranks);
    const auto bytes = static_cast<double>(value.type.bytes());
    out += node.op == &kAllReduce   ? 2 * (n - 1) / n * bytes
           : node.op == &kAllGather ? (n - 1) * bytes
                                    : (n - 1) / n * bytes;
  });
  return out;
}

TEST(Collectives, Zero3MovesHalfAsMuchAgainAsDataParallel) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const Size& size : kSizes) {
      for (const std::string family : {"gpt2", "llama"}) {
        const auto sent = [&](int level) {
          return sent_for_weights(program_of(family, size, parallel(ranks, 1, false, level)),
                                  ranks);
        };
        const double plain = sent(0);
        EXPECT_GT(plain, 0);
        EXPECT_EQ(sent(1), plain) << ranks << " " << size.name << " " << family;
        EXPECT_EQ(sent(2), plain) << ranks << " " << size.name << " " << family;
        EXPECT_EQ(sent(3), 1.5 * plain) << ranks << " " << size.name << " " << family;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
