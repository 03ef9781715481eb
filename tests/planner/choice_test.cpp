/// A choice as flags and words.

#include "tessera/planner/choice.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"

namespace tessera {
namespace {

TEST(PlanChoice, IsToldInFlagsWithoutBlanks) {
  RunConfig base;
  base.model.vocabulary = 96;
  base.model.layers = 6;
  complete(base);
  const PlanChoice choice{.data = 2,
                          .tensor = 2,
                          .pipeline = 2,
                          .sequence = true,
                          .schedule = "interleaved",
                          .chunks = 2,
                          .layout = {1, 2, 2, 1},
                          .micro_batch_size = 1,
                          .zero = 2,
                          .recompute = Recompute::Selective,
                          .recomputed = {1, 0, 2, 0},
                          .offload = {.moments = true}};
  EXPECT_EQ(join(plan_flags(base, choice)),
            "--devices, 8, --tensor-model-parallel-size, 2, --sequence-parallel, "
            "--context-parallel-size, 1, --pipeline-model-parallel-size, 2, --pipeline-schedule, "
            "interleaved, --virtual-pipeline-stages, 2, --pipeline-layout, 1,2,2,1, "
            "--micro-batch-size, 1, --zero-stage, 2, --optimizer-shard-size, 0, "
            "--recompute-granularity, selective, --recompute-layers, 0,3-4, --offload-optimizer, "
            "--no-offload-gradients, --no-offload-parameters, --no-offload-activations, "
            "--rank-order, dp,cp,tp");
  EXPECT_EQ(to_text(choice),
            "dp 2 x tp 2 x pp 2, sequence parallel, interleaved with 2 chunks a stage, layers 1, "
            "2 x 2, 1, micro-batch 1, ZeRO-2, recompute selective of 3 layers, offload optimizer");
}

TEST(PlanChoice, WhatWasAskedForIsToldToo) {
  RunConfig base;
  base.model.vocabulary = 96;
  base.global_batch_size = 64;
  base.given = {{"global-batch-size", "--global-batch-size 64"},
                {"memory-cap", "--memory-cap 1GB"}};
  complete(base);
  const std::vector<std::string> flags = plan_flags(base, {});
  EXPECT_EQ(flags[0], "--global-batch-size");
  EXPECT_EQ(flags[1], "64");
  EXPECT_EQ(flags[2], "--devices");
}

}  // namespace
}  // namespace tessera
