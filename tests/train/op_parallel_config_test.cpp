/// MindSpore's parallel configuration: the same losses on every mesh that it says, for the
/// encoder-decoder model of its tutorial.

#include <gtest/gtest.h>

#include "tessera/models/op_parallel_config.h"
#include "train/staged_run.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

/// Eight heads, so that eight devices have one each.
ModelConfig tutorial_model() {
  ModelConfig out = tiny("transformer", 4);
  out.heads = 8;
  out.ffn_width = 32;
  out.tied_head = false;
  return out;
}

Outcome trained(const TransformerOpParallelConfig& config, std::int64_t devices,
                const ModelConfig& model = tutorial_model()) {
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  const Task task = task_of(model);
  const Strategy strategy = strategy_of(config.on(devices), BatchSplit::Cut, model);
  const Graph step = train_step(task, optimizer, 24);
  StagedRun run(step, strategy, task.inputs);
  run.steps = 5;
  return run();
}

TEST(OpParallelConfig, TheSameLossesOnEveryMesh) {
  const Outcome one = trained({}, 1);
  struct OnDevices {
    const char* why;
    TransformerOpParallelConfig config;
    std::int64_t devices;
  };
  for (const OnDevices& c : {
           OnDevices{"mp 2", {.model_parallel = 2}, 2},
           OnDevices{"mp 4", {.model_parallel = 4}, 4},
           OnDevices{"mp 8", {.model_parallel = 8}, 8},
           OnDevices{"mp 8, rows of the tables cut, unevenly",
                     {.model_parallel = 8, .vocab_emb_dp = false},
                     8},
           OnDevices{"pp 2, four micro-batches", {.pipeline_stage = 2, .micro_batch_num = 4}, 2},
           OnDevices{"pp 2, four micro-batches, mp 2, dp 2, rows cut",
                     {.data_parallel = 2,
                     .model_parallel = 2,
                     .pipeline_stage = 2,
                     .micro_batch_num = 4,
                     .vocab_emb_dp = false},
                     8},
           OnDevices{"optimizer shard", {.data_parallel = 4, .optimizer_shard = true}, 4},
           OnDevices{"optimizer shard, micro-batches, stages, recomputed",
                     {.data_parallel = 2,
                     .pipeline_stage = 2,
                     .micro_batch_num = 3,
                     .optimizer_shard = true,
                     .recompute = true},
                     4},
           OnDevices{"4 of 8 devices", {.data_parallel = 2, .model_parallel = 2}, 8},
           OnDevices{"2 of 8 devices, stages", {.pipeline_stage = 2, .micro_batch_num = 2}, 8},
       }) {
    SCOPED_TRACE(c.why);
    expect_same_training(one, trained(c.config, c.devices));
  }
}

TEST(OpParallelConfig, ExpertsAreTheSameOnEveryMesh) {
  ModelConfig model = tiny("mixtral", 4);
  model.experts = MoEConfig{.expert_num = 4, .num_experts_chosen = 2}.experts(3);
  const Outcome one = trained({}, 1, model);
  expect_same_training(one, trained({.data_parallel = 2, .expert_parallel = 2}, 2, model));
  expect_same_training(
      one, trained({.data_parallel = 4, .model_parallel = 2, .expert_parallel = 4}, 8, model));
}

TEST(OpParallelConfig, ExpertsHaveBounds) {
  EXPECT_EQ(MoEConfig().experts(), ExpertsConfig());
  const ExpertsConfig one = MoEConfig{.expert_num = 8}.experts();
  EXPECT_EQ(one.capacity, 1.1);
  EXPECT_EQ(one.balance, 0.05);
  EXPECT_TRUE(one.pre_softmax);
  for (const MoEConfig& wrong :
       {MoEConfig{.expert_num = 0}, MoEConfig{.expert_num = 4, .capacity_factor = 0.5},
        MoEConfig{.expert_num = 4, .aux_loss_factor = 1},
        MoEConfig{.expert_num = 4, .num_experts_chosen = 5}})
    EXPECT_THROW(wrong.experts(), Error);
}

TEST(OpParallelConfig, DerivedConfigsAndDefaults) {
  const TransformerOpParallelConfig standard;
  EXPECT_EQ(standard.data_parallel, 1);
  EXPECT_EQ(standard.model_parallel, 1);
  EXPECT_EQ(standard.pipeline_stage, 1);
  EXPECT_EQ(standard.micro_batch_num, 1);
  EXPECT_FALSE(standard.optimizer_shard);
  EXPECT_EQ(standard.gradient_aggregation_group, 4);
  EXPECT_FALSE(standard.recompute);
  EXPECT_TRUE(standard.vocab_emb_dp);
  const TransformerOpParallelConfig c{.data_parallel = 2,
                                      .model_parallel = 4,
                                      .pipeline_stage = 3,
                                      .micro_batch_num = 3,
                                      .vocab_emb_dp = false};
  EXPECT_EQ(c.dp_mp_config(), (OpParallelConfig{2, 4}));
  EXPECT_EQ(c.embedding_dp_mp_config(), (EmbeddingOpParallelConfig{2, 4, false}));
  EXPECT_EQ(c.on(24).data(), 2);
  EXPECT_EQ(c.on(24).gradient_groups, 4);
  EXPECT_EQ(c.on(48).data(), 2);
  EXPECT_EQ(c.on(48).repeat, 2);
}

TEST(OpParallelConfig, RanksThatRepeatAreNamed) {
  const TransformerOpParallelConfig c{.data_parallel = 2, .model_parallel = 2};
  EXPECT_EQ(repeated_ranks_text(c.on(4)), "");
  EXPECT_EQ(repeated_ranks_text(c.on(8)), "ranks 0-1, 2-3, 4-5, 6-7 compute the same");
}

TEST(OpParallelConfig, WhatDoesNotFitIsRefused) {
  const auto refused = [](const TransformerOpParallelConfig& config, std::int64_t devices) {
    try {
      config.on(devices);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(refused({.data_parallel = 2, .model_parallel = 8}, 8),
            "data_parallel 2 x model_parallel 8 x pipeline_stage 1 are 16 parts, but there are 8 "
            "devices; lower one of them, or start 16 devices");
  EXPECT_EQ(refused({.data_parallel = 3}, 8),
            "8 devices are no multiple of the 3 parts of data_parallel 3 x model_parallel 1 x "
            "pipeline_stage 1; give 6 or 9 devices");
  EXPECT_EQ(refused({.pipeline_stage = 4, .micro_batch_num = 3}, 8),
            "micro_batch_num 3 is less than pipeline_stage 4, so some stages would be idle; give "
            "at least 4 micro-batches, preferably several times as many");
  EXPECT_EQ(refused({.pipeline_stage = 4, .micro_batch_num = 4}, 8), "taken");
  EXPECT_EQ(refused({.micro_batch_num = 0}, 8), "micro_batch_num is 0; it must be at least 1");
  EXPECT_EQ(refused({.data_parallel = 4, .expert_parallel = 3}, 4),
            "expert_parallel 3 does not divide data_parallel 4; it can be 1, 2, 4");
  EXPECT_EQ(refused({.model_parallel = -1}, 8), "model_parallel is -1; it must be at least 1");
}

}  // namespace
}  // namespace tessera
