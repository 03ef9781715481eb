/// A model that is put together from the parts of the library, as MindSpore's users do: a table of
/// embeddings that the head reads too, a mask of padding per query, a loss weighted by the mask. It
/// trains alike on every mesh, with the table whole and cut by rows.

#include <gtest/gtest.h>

#include "tessera/models/op_parallel_config.h"
#include "tessera/ops/matmul.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "train/one_device.h"
#include "train/staged_run.h"

namespace tessera {
namespace {

/// 19 rows, which no number of ranks divides.
ModelConfig size_of_parts() {
  ModelConfig out = tiny("gpt2", 4);
  out.heads = 8, out.ffn_width = 32;
  return out;
}

Task task_of_parts() {
  const ModelConfig c = size_of_parts();
  Task out;
  out.name = "masked-causal-lm";
  out.inputs = {{"ids", DType::I32, {c.context}, c.vocabulary},
                {"labels", DType::I32, {c.context}, c.vocabulary},
                {"mask", DType::I32, {c.context}, 2}};
  out.tokens = c.context;
  out.means = {{kLossMean}};
  out.measure = [c](const TaskValues& in, const Pass& pass) -> std::vector<Mean> {
    const Value ids = in.at("ids"), mask = in.at("mask");
    Builder& builder = ids.builder();
    EmbeddingResult words;
    Value x;
    {
      const Scope scope(builder, "embed");
      words = embedding(ids, "token", c.vocabulary, c.width, truncated_normal_init(0.1));
      x = learned_positions(words.rows, "position", c.context);
      builder.set_name(x, "residual");
    }
    const Visible visible{.mask = attention_mask(mask)};
    const TransformerLayer layer{.heads = c.heads,
                                 .ffn_width = c.ffn_width,
                                 .attention_dropout = 0.1,
                                 .init = xavier_uniform_init(),
                                 .residual_init = residual_init(xavier_uniform_init(), 8)};
    for (std::int64_t i = 0; i < c.layers; ++i) {
      const Scope scope(builder, text("layers.", i));
      x = encoder_layer(x, layer, visible, pass);
    }
    x = norm(x, "norm", layer);
    const Scope scope(builder, "head");
    return {cross_entropy_mean(matmul(x, words.table, {.trans_b = true}), in.at("labels"), mask)};
  };
  return out;
}

TEST(LibraryParts, AnyMeshComputesWhatOneDeviceDoes) {
  const OneDevice one(task_of_parts());
  struct MeshOfParts {
    const char* why;
    ParallelConfig parallel;
  };
  const auto rows_cut = [](ParallelConfig config, bool cut) {
    config.whole_embeddings = !cut;
    return config;
  };
  for (const MeshOfParts& c : {
           MeshOfParts{"dp 5, whose shares are unequal", parallel_of(5, 1, 1, false, 0, 1)},
           MeshOfParts{"four micro-batches, whose masks have unequal sums",
                       parallel_of(1, 1, 1, false, 0, 4)},
           MeshOfParts{"rows of the table cut in 4, unevenly",
                       rows_cut(parallel_of(1, 4, 1, false, 0, 1), true)},
           MeshOfParts{"tables whole beside tensor parallel",
                       rows_cut(parallel_of(1, 4, 1, false, 0, 1), false)},
           MeshOfParts{"the sequence split: keys of all parts, masks of each",
                       parallel_of(1, 1, 2, false, 0, 1)},
           MeshOfParts{"all at once, rows cut", rows_cut(parallel_of(2, 2, 2, true, 3, 3), true)},
           MeshOfParts{"all at once, tables whole",
                       rows_cut(parallel_of(2, 2, 2, true, 2, 3), false)},
       }) {
    SCOPED_TRACE(c.why);
    const Strategy strategy = strategy_of(c.parallel, BatchSplit::Cut, size_of_parts());
    EXPECT_EQ(one.wrong(fuse(partition(propagate(add_uses(simplify(one.graph)), strategy)))), "");
  }
}

TEST(LibraryParts, TrainAlikeOnDevices) {
  const Task task = task_of_parts();
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Graph step = train_step(task, optimizer, 24);
  const auto trained = [&](const TransformerOpParallelConfig& config, std::int64_t devices) {
    StagedRun run(step, strategy_of(config.on(devices), BatchSplit::Cut, size_of_parts()),
                  task.inputs);
    run.steps = 5;
    return run();
  };
  const Outcome one = trained({}, 1);
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(whole ? "table whole" : "table cut by rows");
    expect_same_training(one, trained({.model_parallel = 4, .vocab_emb_dp = whole}, 4));
    expect_same_training(one, trained({.data_parallel = 2,
                                       .model_parallel = 2,
                                       .pipeline_stage = 2,
                                       .micro_batch_num = 4,
                                       .optimizer_shard = true,
                                       .vocab_emb_dp = whole},
                                      8));
  }
}

}  // namespace
}  // namespace tessera
