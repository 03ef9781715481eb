/// What is told of a run on a pipeline is of all its ranks, which are unlike.

#include <gtest/gtest.h>

#include "tessera/bench/verify.h"
#include "tessera/comm/local.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_requirements.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

TEST(Facts, OfTheFullestAndOfThatWhichSendsMost) {
  const RunRequirements a{10, 9, 1, {{"pp", 4}, {"tp", 4}}}, b{12, 8, 2, {{"pp", 7}}};
  EXPECT_EQ(a.sent_bytes(), 8);
  EXPECT_EQ(over_all_ranks({b, a, a}), (RunRequirements{12, 9, 4, {{"pp", 4}, {"tp", 4}}}));
  EXPECT_EQ(over_all_ranks({a}), a);
  EXPECT_EQ(parse_requirements(to_text(a)), a);
}

struct SeesStart : TrainCallback {
  void on_start(const RunStart& told) override { start = told; }
  RunStart start;
};

class StageFacts : public TrainerTest {
 protected:
  /// Two uneven stages: the second has the head, and the first two of three layers.
  RunConfig staged(const std::string& output) const {
    RunConfig c = config(output);
    c.model.layers = 3;
    c.parallel.devices = 4;
    c.parallel.pipeline = c.parallel.tensor = 2;
    c.micro_batch_size = 2;
    c.steps = 4;
    c.threads = 1;
    return c;
  }

  /// As the command does it. What was compiled is that of `compiled`.
  Summary run_staged(const RunConfig& c, SeesStart& start, std::vector<Plan>& plans) {
    Problems problems;
    std::optional<PreparedRun> prepared = prepare_run(c, problems);
    problems.raise();
    const RunConfig complete = prepared->config;
    WantedPrograms wanted = wanted_programs(RunSetup(complete));
    wanted.stages = true;
    Compiled compiled = compile_programs(RunSetup(complete), wanted, *make_cpu_device({1, -1}));
    plans.push_back(std::move(compiled.plan));
    for (Plan& plan : compiled.others) plans.push_back(std::move(plan));
    Summary out;
    run_ranks(4, [&](Communicator& world) {
      const auto device = make_cpu_device({1, -1});
      if (world.rank() > 0) return follow(complete, CpuBackend(*device), world);
      TrainOptions options{{&start}};
      options.world = &world;
      out = train(std::move(*prepared), CpuBackend(*device), options).summary;
    });
    return out;
  }
};

TEST_F(StageFacts, OfARunAreThoseOfAllStages) {
  RunConfig c = staged("run");
  c.save_every = 3;
  c.sample_every = 2;  // the logits leave the model outside of its blocks
  SeesStart seen;
  std::vector<Plan> plans;
  const Summary s = run_staged(c, seen, plans);
  ASSERT_EQ(plans.size(), 2u);
  ASSERT_NE(plans[0].peak_bytes(), plans[1].peak_bytes()) << "the stages are to be uneven";
  EXPECT_EQ(s.planned_peak_bytes, std::max(plans[0].peak_bytes(), plans[1].peak_bytes()));
  EXPECT_EQ(s.measured_peak_bytes, s.planned_peak_bytes);
  EXPECT_EQ(s.lower_bound_bytes,
            std::max(plans[0].lower_bound_bytes(), plans[1].lower_bound_bytes()));
  const RunRequirements first = requirements_of(plans[0]), second = requirements_of(plans[1]);
  ASSERT_NE(first.flops, second.flops);
  EXPECT_EQ(s.flops_per_step, 2 * (first.flops + second.flops));
  EXPECT_EQ(s.sent, first.sent_bytes() >= second.sent_bytes() ? first.sent : second.sent);
  EXPECT_EQ(s.save_copy_bytes, save_copy_bytes(c, plans[0]));
  EXPECT_EQ(s.save_copy_bytes, save_copy_bytes(c, plans[1])) << "every rank knows the largest";
  EXPECT_EQ(seen.start.peak_bytes, s.planned_peak_bytes);
  EXPECT_EQ(seen.start.flops_per_step, s.flops_per_step);
  EXPECT_EQ(seen.start.save_copy_bytes, s.save_copy_bytes);
}

/// The first rank of each stage writes the graphs of its stage, the leader those of all stages too.
TEST_F(StageFacts, GraphsOfEachStageAreDumpedByIt) {
  RunConfig c = staged("run");
  c.dump_dir = folder_ + "/graphs";
  c.eval_at_end = false;
  SeesStart seen;
  std::vector<Plan> plans;
  run_staged(c, seen, plans);
  const auto written = [&](const char* name) {
    return std::filesystem::exists(c.dump_dir + "/" + name);
  };
  for (const char* name :
       {"train.1.source.txt", "train.7.propagate.txt", "train.8.partition.stage0.forward.txt",
        "train.8.partition.stage1.forward.txt", "train.14.pack.stage1.update.txt"})
    EXPECT_TRUE(written(name)) << name;
  EXPECT_FALSE(written("train.8.partition.forward.txt"));
  EXPECT_NE(file("graphs/train.8.partition.stage0.forward.txt"),
            file("graphs/train.8.partition.stage1.forward.txt"));
}

/// Gradients that are finished after the last micro-batch cross between stages in both directions.
TEST(StagedVerify, SeesTheNumbersOfOneDevice) {
  struct Row {
    const char* schedule;
    ParallelConfig parallel;
    int zero = 0;
  };
  RunConfig config;
  find_preset("gpt2-tiny").apply(config);
  config.model.dropout = 0.1;
  config.model.vocabulary = 61;
  config.threads = 1;
  const auto trace = [](RunConfig c) {
    complete(c);
    std::vector<StepTrace> out;
    if (c.parallel.devices == 1)
      return trace_steps(c, 2, CpuBackend(*make_cpu_device({1, -1})), nullptr);
    run_ranks(static_cast<int>(c.parallel.devices), [&](Communicator& world) {
      auto mine = trace_steps(c, 2, CpuBackend(*make_cpu_device({1, -1})), &world);
      if (world.rank() == 0) out = std::move(mine);
    });
    return out;
  };
  const std::vector<StepTrace> one = trace(config);
  for (const Row& row :
       {Row{"gpipe", {.devices = 4, .tensor = 2}}, Row{"1f1b", {.devices = 4, .tensor = 2}},
        Row{"1f1b", {.devices = 4}, 1}, Row{"zb-h1", {.devices = 4}, 2},
        Row{"zb-v", {.devices = 4}, 3}, Row{"zb-v", {.devices = 4, .tensor = 2, .sequence = true}},
        Row{"interleaved", {.devices = 4, .context = 2}}}) {
    SCOPED_TRACE(text(row.schedule, ", zero ", row.zero));
    RunConfig c = config;
    c.parallel = row.parallel;
    c.parallel.pipeline = 2;
    c.parallel.schedule = row.schedule;
    c.micro_batch_size = 1;
    c.zero1 = row.zero == 1, c.zero2 = row.zero == 2, c.zero3 = row.zero == 3;
    const VerifyReport report = compare_traces(one, trace(c));
    EXPECT_TRUE(report.ok()) << to_text(report);
  }
}

}  // namespace
}  // namespace tessera
