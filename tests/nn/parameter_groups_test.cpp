/// Parameter groups: which group holds, and that each tensor moves as it would with an optimizer of
/// its own.

#include "tessera/nn/parameter_groups.h"

#include "nn/update_run.h"

namespace tessera {
namespace {

using test::UpdateBatch;
using test::UpdateRun;

OptimizerConfig grouped_recipe(OptimizerKind kind) {
  OptimizerConfig c;
  c.kind = kind;
  c.eps = 1e-6;
  c.weight_decay = 0.1;
  c.clip = 0;  // the norm of all gradients would be of other tensors too
  c.schedule = {.kind = ScheduleKind::Constant, .lr = 0.02};
  return c;
}

TEST(ParameterGroups, TheLastThatMatchesHolds) {
  const std::vector<ParameterGroup> groups = {{.paths = {"*"}, .lr_scale = 2},
                                              {.paths = {"a.*", "*.bias"}, .weight_decay = 0.5},
                                              {.paths = {"a.b"}, .lr_scale = 4}};
  EXPECT_EQ(group_of("a.b", groups), &groups[2]);
  EXPECT_EQ(group_of("a.c", groups), &groups[1]);
  EXPECT_EQ(group_of("z.bias", groups), &groups[1]);
  EXPECT_EQ(group_of("z", groups), &groups[0]);
  EXPECT_EQ(group_of("z", {}), nullptr);
}

/// The matrix in one group, the bias in another, the others in none: each as if alone with the
/// group's decay and learning rate.
TEST(ParameterGroups, EachTensorMovesAsWithItsOwnOptimizer) {
  struct Row {
    const char* path;
    double lr, decay;  // decay of tensors of any dims
  };
  const Row rows[] = {{"layers.0.weight", 0.02 * 0.25, 0.3},
                      {"layers.0.bias", 0.02 * 3, 0.2},
                      {"zero", 0.02, 0.1},
                      {"unused", 0.02, 0}};
  for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Adam, OptimizerKind::Sgd,
                                   OptimizerKind::Lamb, OptimizerKind::AdamWeightDecay}) {
    SCOPED_TRACE(static_cast<int>(kind));
    OptimizerConfig config = grouped_recipe(kind);
    config.groups = {{.paths = {"layers.*"}, .weight_decay = 0.2, .lr_scale = 3},
                     {.paths = {"*.weight"}, .weight_decay = 0.3, .lr_scale = 0.25}};
    UpdateRun grouped(config);
    std::vector<UpdateRun> alone;
    for (const Row& row : rows) {
      OptimizerConfig own = grouped_recipe(kind);
      own.schedule.lr = row.lr;
      own.groups = {{.paths = {"*"}, .weight_decay = row.decay}};
      alone.emplace_back(own);
    }
    for (const UpdateBatch& batch : test::update_batches()) {
      grouped.step(batch);
      for (std::size_t n = 0; n < std::size(rows); ++n) {
        alone[n].step(batch);
        const HostTensor &have = grouped.state(rows[n].path), &want = alone[n].state(rows[n].path);
        for (std::int64_t i = 0; i < have.numel(); ++i)
          EXPECT_NEAR(have.at(i), want.at(i), 1e-14) << rows[n].path << " [" << i << "]";
      }
    }
  }
}

/// SGD without momentum: p -= lr * scale * (g + decay * p).
TEST(ParameterGroups, OneStepByHand) {
  OptimizerConfig config = grouped_recipe(OptimizerKind::Sgd);
  config.momentum = 0;
  config.groups = {{.paths = {"layers.0.bias"}, .weight_decay = 0.5, .lr_scale = 3},
                   {.paths = {"zero"}, .lr_scale = 0}};
  UpdateRun run(config);
  const UpdateBatch batch = test::update_batches()[0];
  run.step(batch);
  const std::vector<test::UpdatedTensor> tensors = test::updated_tensors();
  std::vector<double> weight = tensors[0].start, bias = tensors[1].start;
  for (std::size_t i = 0; i < weight.size(); ++i)
    weight[i] -= 0.02 * (batch.grads[0][i] + 0.1 * weight[i]);
  for (std::size_t i = 0; i < bias.size(); ++i)
    bias[i] -= 0.02 * 3 * (batch.grads[1][i] + 0.5 * bias[i]);
  test::expect_state(run, "layers.0.weight", weight);
  test::expect_state(run, "layers.0.bias", bias);
  test::expect_state(run, "zero", tensors[2].start);  // a learning rate of 0 freezes it
}

/// Every parameter decays but those whose name has norm or bias in it.
TEST(ParameterGroups, DecayGroups) {
  const std::vector<ParameterGroup> groups = decay_groups();
  const auto decay = [&](std::string_view path) { return group_of(path, groups)->weight_decay; };
  EXPECT_EQ(decay("layers.0.attn.qkv.weight"), 0.1);
  EXPECT_EQ(decay("layers.0.attn.qkv.bias"), 0);
  EXPECT_EQ(decay("layers.0.norm1.weight"), 0);
  EXPECT_EQ(decay("head.final_norm.weight"), 0);
  EXPECT_EQ(decay("scale"), 0.1) << "a vector of another name";
  EXPECT_EQ(group_of("w", decay_groups(0.3))->weight_decay, 0.3);
  require_matches(groups, {"w"});  // a model without norms and biases is no error
}

TEST(ParameterGroups, APatternThatMatchesNothingIsRefused) {
  struct Row {
    const char *pattern, *want;
  };
  for (const Row& row :
       {Row{"layers.0.wieght",
            "no parameter matches 'layers.0.wieght', which a parameter group names; nearest are "
            "layers.0.weight, layers.0.bias; '*' stands for any characters"},
        Row{"*.embedding.*",
            "no parameter matches '*.embedding.*', which a parameter group names; there are "
            "layers.0.weight, layers.0.bias, zero, ...; '*' stands for any characters"}}) {
    OptimizerConfig config = grouped_recipe(OptimizerKind::AdamW);
    config.groups = {{.paths = {"zero", row.pattern}, .weight_decay = 0}};
    try {
      UpdateRun run(config);
      ADD_FAILURE() << row.pattern << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), row.want);
    }
  }
}

TEST(ParameterGroups, Problems) {
  OptimizerConfig config = grouped_recipe(OptimizerKind::AdamW);
  config.groups = {{.paths = {"a", "b"}, .weight_decay = -1}, {.paths = {"c"}, .lr_scale = -2}};
  const std::vector<std::string> wrong = problems(config).texts();
  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_EQ(wrong[0],
            "weight_decay of the group a, b is -1; it must be at least 0 and at most 1e+30");
  EXPECT_EQ(wrong[1], "lr_scale of the group c is -2; it must be at least 0 and at most 1e+30");
}

}  // namespace
}  // namespace tessera
