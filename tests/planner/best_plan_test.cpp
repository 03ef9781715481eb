/// The planner against plans that are listed without its help.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/small_run.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/device/device.h"
#include "tessera/planner/planner.h"

namespace tessera {
namespace {

Device& described() {
  static const std::unique_ptr<Device> out = make_described_device();
  return *out;
}

/// On so many devices of h100-256; what is told by these flags stays.
RunConfig run_with(SmallRun small, const std::vector<std::string>& told) {
  small.machine = "h100-256";
  RunConfig out = small_run(small);
  for (const std::string& field : told) out.given[field] = text("--", field);
  return out;
}

struct Listed {
  PlanChoice choice;
  double seconds = 0;
  std::int64_t bytes = 0;
};

/// Every value of every knob with every other, as far as it is legal.
struct Knobs {
  std::vector<std::int64_t> data = {1}, experts = {1}, tensor = {1}, pipeline = {1},
                            micro_batch = {1};
  std::vector<std::pair<const char*, std::int64_t>> schedules = {{"1f1b", 1}};  // and chunks
  std::vector<std::int64_t> zero = {0};
  std::vector<Recompute> recompute = {Recompute::None};
};

std::optional<Listed> whole_of(const RunConfig& base, const PlanChoice& choice) {
  try {
    const RunConfig run = with(base, choice);
    WantedPrograms wanted = wanted_programs(RunSetup(run));
    wanted.stages = true;
    const Compiled compiled = compile_programs(RunSetup(run), wanted, described());
    const std::vector<const Plan*> plans = plans_of(compiled);
    Listed out{choice, 0, 0};
    for (const Plan* plan : plans) out.bytes = std::max(out.bytes, plan->peak_bytes());
    out.seconds =
        predict(plans, kTrainProgram, pipeline_of(plans, kTrainProgram), base.parallel.machine)
            .seconds;
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Listed> all_of(const RunConfig& base, std::int64_t devices, const Knobs& knobs) {
  std::vector<PlanChoice> choices = {PlanChoice()};
  const auto cross = [&](const auto& values, auto set) {
    std::vector<PlanChoice> out;
    for (const PlanChoice& choice : choices)
      for (const auto& value : values) set(out.emplace_back(choice), value);
    choices = out;
  };
  cross(knobs.data, [](PlanChoice& c, std::int64_t n) { c.data = n; });
  cross(knobs.experts, [](PlanChoice& c, std::int64_t n) { c.experts = n; });
  cross(knobs.tensor, [](PlanChoice& c, std::int64_t n) { c.tensor = n; });
  cross(knobs.pipeline, [](PlanChoice& c, std::int64_t n) { c.pipeline = n; });
  cross(knobs.micro_batch, [](PlanChoice& c, std::int64_t n) { c.micro_batch_size = n; });
  cross(knobs.schedules, [](PlanChoice& c, const auto& schedule) {
    c.schedule = schedule.first;
    c.chunks = schedule.second;
  });
  cross(knobs.zero, [](PlanChoice& c, std::int64_t stage) { c.zero = stage; });
  cross(knobs.recompute, [](PlanChoice& c, Recompute what) { c.recompute = what; });
  std::vector<Listed> out;
  for (const PlanChoice& choice : choices) {
    const std::int64_t at_once = choice.data * choice.micro_batch_size;
    if (choice.devices() > devices || base.global_batch_size % at_once != 0) continue;
    if ((choice.zero > 0 && choice.data == 1) || choice.data % choice.experts != 0) continue;
    if (const std::optional<Listed> listed = whole_of(base, choice)) out.push_back(*listed);
  }
  return out;
}

struct Row {
  const char* name;
  SmallRun small;
  std::int64_t devices;
  std::vector<std::string> told;
  Knobs knobs;
  std::vector<std::int64_t> caps;  // in MB; 0: none
};

const std::vector<std::string> kTold = {
    "context-parallel-size", "sequence-parallel",  "optimizer-shard-size", "offload-optimizer",
    "offload-gradients",     "offload-parameters", "offload-activations",  "rank-order"};

std::vector<std::string> and_given(std::vector<std::string> more) {
  more.insert(more.end(), kTold.begin(), kTold.end());
  return more;
}

const Row kRows[] = {
    {"schedules that lose less than others",
     {32, 8, 1024, 512, 512, 16},
     8,
     and_given({"devices", "tensor-model-parallel-size", "pipeline-model-parallel-size",
                "micro-batch-size"}),
     {.pipeline = {8},
      .schedules = {{"1f1b", 1},
                    {"interleaved", 2},
                    {"interleaved", 3},
                    {"interleaved", 4},
                    {"zb-h1", 1},
                    {"zb-v", 2}}},
     {0}},
    {"one or two micro-batches, and every level of ZeRO",
     {8, 4, 256, 128, 2000, 32},
     8,
     and_given({"pipeline-model-parallel-size"}),
     {.data = {4, 8}, .tensor = {1, 2}, .micro_batch = {2, 4, 8}, .zero = {0, 1, 2, 3}},
     {120, 400}},
    {"experts over some of the devices",
     {2, 4, 128, 64, 500, 16, "", false, 8},
     4,
     and_given({"pipeline-model-parallel-size"}),
     {.data = {2, 4},
      .experts = {1, 2, 4},
      .tensor = {1, 2},
      .micro_batch = {1, 2, 4},
      .zero = {0, 1, 2, 3},
      .recompute = {Recompute::None, Recompute::Elementwise}},
     {0, 18}},
    {"micro-batches of thousands of samples",
     {2, 2, 32, 16, 40, 4096},
     1,
     and_given({"devices"}),
     {.micro_batch = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096},
      .recompute = {Recompute::None, Recompute::Elementwise}},
     {0}},
};

TEST(BestPlan, IsNotSlowerThanAnyThatIsListed) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    RunConfig base = run_with(row.small, row.told);
    if (row.knobs.data.size() == 1) base.parallel.devices = row.devices;
    if (row.knobs.pipeline[0] > 1) base.parallel.pipeline = row.knobs.pipeline[0];
    base.micro_batch_size = 1;
    const std::vector<Listed> all = all_of(base, row.devices, row.knobs);
    ASSERT_GT(all.size(), 4U);
    for (const std::int64_t megabytes : row.caps) {
      PlanQuestion question{base, base.parallel.machine, row.devices, {}};
      if (megabytes > 0) question.cap = megabytes * 1'000'000;
      question.what_if = false;
      const PlanAnswer answer =
          plan_for(question, [](const RunConfig&) -> Device& { return described(); });
      const Listed* best = nullptr;
      for (const Listed& each : all) {
        if (question.cap && each.bytes > *question.cap) continue;
        if (best == nullptr || each.seconds < best->seconds) best = &each;
      }
      ASSERT_NE(best, nullptr) << megabytes << " MB";
      EXPECT_LE(answer.found.least_seconds(), 1.004 * best->seconds)
          << megabytes << " MB: best " << to_text(best->choice) << ", chosen "
          << to_text(answer.best().considered.choice);
    }
  }
}

}  // namespace
}  // namespace tessera
