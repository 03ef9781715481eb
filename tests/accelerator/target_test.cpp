/// What modules ask of a plugin, by what they are for.

#include "accelerator/test_run.h"
#include "tessera/accelerator/loaded_programs.h"

namespace tessera::test {

namespace {

/// A step of a model whose attention cuDNN takes.
Plan plan_in_bf16(bool graph_optimization) {
  RunConfig config;
  find_preset("gpt2-tiny").apply(config);
  config.model.vocabulary = 61;
  config.model.layers = 1;
  config.model.dropout = 0;
  config.bf16 = true;
  config.graph_optimization = graph_optimization;
  complete(config);
  const WantedPrograms wanted{.evaluate = false, .texts = 0, .local = true};
  return compile_programs(RunSetup(config), wanted, *make_described_device()).plan;
}

Target target_of(const char* platform, const char* capability) {
  Target out{platform, {}};
  if (capability != nullptr) out.device = {{"compute_capability", std::string(capability)}};
  return out;
}

}  // namespace

TEST(Targets, AttentionByCudnnWhereItIs) {
  struct Row {
    const char *platform, *capability;
    bool called;
  };
  constexpr Row kRows[] = {{"cuda", "9.0", true},  {"cuda", "12.1", true},   {"cuda", "8.0", true},
                           {"cuda", "7.5", false}, {"cuda", nullptr, false}, {"rocm", "9.0", false},
                           {"cpu", nullptr, false}};
  const Plan with = plan_in_bf16(true), without = plan_in_bf16(false);
  const auto calls = [&](const Plan& plan, const Target& target) {
    const Plan* const plans[] = {&plan};
    const std::string text = modules_of(plans, kTrainProgram, target).stages[0][0].module.text;
    return text.find("__cudnn$fmhaSoftmaxBackward") != std::string::npos;
  };
  for (const Row& row : kRows) {
    const Target target = target_of(row.platform, row.capability);
    SCOPED_TRACE(text(row.platform, " ", row.capability == nullptr ? "" : row.capability));
    EXPECT_EQ(calls(with, target), row.called);
    EXPECT_FALSE(calls(without, target));
  }
}

}  // namespace tessera::test
