/// Context parallel training in which ranks exchange tokens for heads computes what one device
/// computes, and is chosen where it sends less.

#include <gtest/gtest.h>

#include "tessera/models/context_parallel.h"
#include "tessera/ops/attention.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/traffic.h"
#include "tessera/train/programs.h"
#include "train/one_device.h"
#include "train/staged_run.h"

namespace tessera {
namespace {

struct HeadCase {
  const char* name;
  const char* family;
  ParallelConfig parallel;
  std::int64_t context = 0;  // 0: that of tiny()
  bool residual = false;

  ModelConfig model() const {
    ModelConfig out = tiny(family);
    if (context > 0) out.context = context;
    out.residual_attention = residual;
    return out;
  }
  Strategy strategy(KeyExchange keys) const {
    ParallelConfig of = parallel;
    of.keys = keys;
    return strategy_of(of, BatchSplit::Cut, model());
  }
};

std::ostream& operator<<(std::ostream& out, const HeadCase& c) { return out << c.name; }

class HeadExchangeStep : public testing::TestWithParam<HeadCase> {};

/// Each attention has all tokens, of some heads.
TEST_P(HeadExchangeStep, EqualsOneDevice) {
  const OneDevice one(task_of(GetParam().model()));
  const Program program =
      partition(propagate(add_uses(simplify(one.graph)), GetParam().strategy(KeyExchange::Heads)));
  EXPECT_EQ(one.wrong(fuse(program)), "");
  const ParallelConfig& parallel = GetParam().parallel;
  for (const Region& region : program.regions) {
    for (const Node& node : region.graph.nodes()) {
      if (node.op != &kAttention) continue;
      const Shape &queries = region.graph.type(node.inputs[0]).shape,
                  &keys = region.graph.type(node.inputs[1]).shape;
      EXPECT_GE(std::min(queries[1], keys[1]), 6) << "tokens, of a source or of a target";
      EXPECT_EQ(keys[2], GetParam().model().groups() / (parallel.context * parallel.tensor));
    }
  }
}

TEST_P(HeadExchangeStep, TrainsAsGathered) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Task task = task_of(GetParam().model());
  const Graph step = train_step(task, optimizer, 12);
  const StagedRun gathered(step, GetParam().strategy(KeyExchange::Gather), task.inputs);
  StagedRun run(step, GetParam().strategy(KeyExchange::Heads), task.inputs);
  run.guard_bytes = 64;
  expect_same_training(gathered(), run());
}

ParallelConfig parts(std::int64_t cp, std::int64_t tp = 1, std::int64_t dp = 1,
                     bool sequence = false, int zero = 0, std::int64_t micro_batches = 1) {
  return parallel_of(dp, tp, cp, sequence, zero, micro_batches);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, HeadExchangeStep,
    testing::Values(HeadCase{"Cp2", "gpt2", parts(2)}, HeadCase{"Cp4", "gpt2", parts(4)},
                    HeadCase{"LlamaCp2", "llama", parts(2)},
                    HeadCase{"Cp2Tp2", "gpt2", parts(2, 2)},
                    HeadCase{"Cp2Tp2SequenceDp2Zero3", "gpt2", parts(2, 2, 2, true, 3, 2)},
                    HeadCase{"WindowCp2", "mistral", parts(2)},
                    HeadCase{"SlopesCp2", "bloom", parts(2)}, HeadCase{"BertCp2", "bert", parts(2)},
                    HeadCase{"ResidualScoresCp2", "bert", parts(2), 0, true},
                    HeadCase{"DistancesCp2", "deberta-v2", parts(2)},
                    HeadCase{"EncoderDecoderCp4", "transformer", parts(4)},
                    HeadCase{"RelativeCp2", "t5", parts(2)}),
    [](const auto& info) { return info.param.name; });

struct ExchangeChoice {
  const char* name;
  std::int64_t cp, tp, heads, groups, window, context;
  KeyExchange chosen;
  const char* family = nullptr;  // null: by the window
};

/// By the formula, and by what plans send.
TEST(HeadExchange, IsChosenWhereItSendsLess) {
  constexpr KeyExchange kHeads = KeyExchange::Heads, kRing = KeyExchange::Ring;
  for (const ExchangeChoice& c : {
           ExchangeChoice{"as many keys as queries", 2, 1, 8, 8, 0, 256, kHeads},
           ExchangeChoice{"more ranks", 8, 1, 8, 8, 0, 256, kHeads},
           ExchangeChoice{"few keys, few ranks", 2, 1, 8, 2, 0, 256, kRing},
           ExchangeChoice{"few keys, many ranks", 8, 1, 32, 8, 0, 256, kHeads},
           ExchangeChoice{"half blocks, which go to and fro", 2, 1, 8, 2, 0, 512, kHeads},
           ExchangeChoice{"a window of a block", 8, 1, 8, 8, 32, 256, kRing},
           ExchangeChoice{"a window of many blocks", 8, 1, 8, 8, 200, 256, kHeads},
           ExchangeChoice{"heads that are not divided", 4, 1, 6, 6, 0, 256, kRing},
           ExchangeChoice{"heads that tp divides alone", 2, 2, 2, 2, 0, 256, kRing},
           ExchangeChoice{"heads that both divide", 2, 2, 8, 8, 0, 256, kHeads},
           ExchangeChoice{"few keys that both divide", 2, 4, 32, 8, 0, 256, kRing},
           ExchangeChoice{"norms behind attention", 4, 1, 8, 8, 32, 256, kRing, "gemma2"},
           ExchangeChoice{"norms behind attention, more keys", 4, 1, 8, 8, 150, 256, kHeads,
                          "gemma2"},
           ExchangeChoice{"a window of a block on both sides", 8, 1, 8, 8, 32, 256, kHeads,
                          "modernbert"},
       }) {
    SCOPED_TRACE(c.name);
    ModelConfig model = published(c.family != nullptr ? c.family
                                  : c.window > 0      ? "mistral"
                                                      : "llama");
    model.layers = 1, model.heads = c.heads, model.kv_heads = c.groups;
    model.width = 8 * c.heads, model.context = c.context, model.vocabulary = 19;
    model.window = c.window;
    ParallelConfig parallel = parts(c.cp, c.tp);
    parallel.recompute = Recompute::Elementwise;
    EXPECT_EQ(key_exchange_of(parallel, model), c.chosen);
    if (c.heads % (c.cp * c.tp) != 0) continue;
    OptimizerConfig optimizer;
    optimizer.schedule.kind = ScheduleKind::Constant;
    const Graph step = train_step(task_of(model), optimizer, 2);
    std::map<KeyExchange, std::int64_t> sent;
    for (const KeyExchange keys : {kRing, kHeads}) {
      parallel.keys = keys;
      const StagedRun run(step, strategy_of(parallel, BatchSplit::Cut, model));
      const auto device = make_cpu_device({1, -1});
      for (const auto& [axes, counts] : planned_counts(run.plan(*device, 0).program(kTrainProgram)))
        sent[keys] += bytes_of(counts);
    }
    EXPECT_EQ(sent[kHeads] < sent[kRing] ? kHeads : kRing, c.chosen)
        << sent[kHeads] << " bytes with heads, " << sent[kRing] << " with a ring";
  }
}

TEST(HeadExchange, NeedsHeadsThatDivide) {
  ModelConfig model = tiny("llama");  // 4 heads, 2 of keys
  ParallelConfig parallel = parts(4);
  EXPECT_TRUE(problems(parallel, model).empty());
  parallel.keys = KeyExchange::Heads;
  EXPECT_EQ(problems(parallel, model).texts(),
            std::vector<std::string>{"cp-comm-type a2a gives each device some of the heads, but "
                                     "context-parallel-size 4 does not divide the model's 2 "
                                     "key-value heads; give p2p"});
  parallel = parts(2, 2);
  parallel.keys = KeyExchange::Heads;
  EXPECT_EQ(problems(parallel, model).texts(),
            std::vector<std::string>{"cp-comm-type a2a gives each device some of the heads, but "
                                     "tensor-model-parallel-size 2 x context-parallel-size 2 does "
                                     "not divide the model's 2 key-value heads; give p2p"});
}

}  // namespace
}  // namespace tessera
