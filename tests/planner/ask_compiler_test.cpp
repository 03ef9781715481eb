/// Plans for devices whose compiler is asked: it has the last word on memory.

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/small_run.h"
#include "tessera/base/error.h"
#include "tessera/device/device.h"
#include "tessera/planner/answer.h"

namespace tessera::test {

namespace {

PlanQuestion small_question(std::int64_t cap) {
  const RunConfig base = small_run({.layers = 2,
                                    .heads = 2,
                                    .width = 64,
                                    .context = 32,
                                    .vocabulary = 96,
                                    .batch = 8,
                                    .machine = "h100-256"});
  PlanQuestion out{base, base.parallel.machine, 2, cap};
  out.what_if = false;
  return out;
}

PlanAnswer answer_to(const PlanQuestion& question) {
  const std::unique_ptr<Device> device = make_described_device();
  return plan_for(question, [&](const RunConfig&) -> Device& { return *device; });
}

}  // namespace

TEST(AskCompiler, RefutesWhatItDoesNotFit) {
  PlanQuestion question = small_question(std::int64_t{1} << 30);
  const PlanAnswer without = answer_to(question);
  EXPECT_FALSE(without.by_compiler);
  const std::string fastest = to_text(without.best().considered.choice);
  int asked = 0;
  question.ask_compiler = [&](const RunConfig&, const Compiled& compiled) {
    EXPECT_NE(compiled.plan.program(kTrainProgram).local, nullptr) << "it reads programs";
    CompiledBytes out;
    out.compiler = "one that takes more of the first";
    out.stages.emplace_back().argument = asked++ == 0 ? std::int64_t{2} << 30 : 1000;
    return out;
  };
  const PlanAnswer with = answer_to(question);
  EXPECT_EQ(asked, 2);
  EXPECT_NE(to_text(with.best().considered.choice), fastest);
  ASSERT_TRUE(with.by_compiler);
  EXPECT_EQ(with.by_compiler->peak(), 1000);
  const auto refuted = std::ranges::find(with.found.refuted, fastest, [](const Candidate& each) {
    return to_text(each.considered.choice);
  });
  ASSERT_NE(refuted, with.found.refuted.end());
  EXPECT_EQ(refuted->verdict.peak(), std::int64_t{2} << 30);
  EXPECT_NE(to_text(with, question).find("as compiled 1000 B"), std::string::npos)
      << to_text(with, question);
  EXPECT_NE(to_json(with, question).find("\"compiled\""), std::string::npos);
}

/// Every stage has its say: one that does not fit refutes the plan.
TEST(AskCompiler, LooksAtAllStages) {
  PlanQuestion question = small_question(std::int64_t{1} << 30);
  question.base.parallel.pipeline = 2;
  question.base.given["pipeline-model-parallel-size"] = "--pipeline-model-parallel-size 2";
  int asked = 0;
  question.ask_compiler = [&](const RunConfig& config, const Compiled& compiled) {
    EXPECT_EQ(config.parallel.pipeline, 2);
    for (const Plan* plan : plans_of(compiled))
      EXPECT_NE(plan->program(kTrainProgram).local, nullptr) << "stage " << plan->stage();
    CompiledBytes out;
    out.stages.resize(2);
    out.stages[0].argument = 1000;
    out.stages[1].argument = asked++ == 0 ? std::int64_t{2} << 30 : 3000;
    return out;
  };
  const PlanAnswer answer = answer_to(question);
  EXPECT_EQ(asked, 2);
  ASSERT_EQ(answer.found.refuted.size(), 1U);
  EXPECT_EQ(answer.found.refuted[0].verdict.peak_bytes,
            (std::vector<std::int64_t>{1000, std::int64_t{2} << 30}));
  const std::string said = to_text(answer, question);
  EXPECT_NE(said.find("as compiled 2.93 KiB of a device of stage 1"), std::string::npos) << said;
}

TEST(AskCompiler, RefusesWhereItFitsNothing) {
  PlanQuestion question = small_question(std::int64_t{1} << 30);
  question.limits.whole_plans = 2;
  int asked = 0;
  question.ask_compiler = [&](const RunConfig&, const Compiled&) {
    ++asked;
    CompiledBytes out;
    out.stages.emplace_back().argument = (asked == 1 ? std::int64_t{3} : std::int64_t{4}) << 30;
    return out;
  };
  try {
    answer_to(question);
    FAIL() << "nothing fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    EXPECT_NE(std::string(error.what()).find("3.00 GiB"), std::string::npos) << error.what();
    EXPECT_EQ(asked, 2) << "compilers take minutes";
  }
}

}  // namespace tessera::test
