/// The planner against all plans there are, and what must hold whatever it plans.

#include "tessera/planner/planner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/problems.h"
#include "tessera/device/device.h"
#include "tessera/planner/answer.h"
#include "tessera/planner/answer_page.h"
#include "tessera/planner/knobs.h"
#include "tessera/train/fit_memory.h"

namespace tessera {
namespace {

/// Of small devices, so that a small model has to be shared out.
Machine machine(std::int64_t devices = 4) {
  Machine out;
  out.name = "lab";
  out.core = {10, 1, 2, 1};
  out.socket = {5, 2, 1, 1};
  out.host = {2, 5, devices / 2, 2};
  out.rack = {2, 5, 1, 2};
  out.device.overlap = true;
  return out;
}

RunConfig tiny_run() {
  RunConfig out;
  out.model.layers = 4;
  out.model.heads = 2;
  out.model.width = 64;
  out.model.context = 32;
  out.model.vocabulary = 96;
  out.global_batch_size = 8;
  out.held_out = 0;
  out.threads = 1;
  complete(out);
  out.parallel.machine = machine();
  return out;
}

/// What is asked for by a flag stays.
void ask(RunConfig& config, std::string_view field) {
  config.given[std::string(field)] = text("--", field);
}

Device& device() {
  static const std::unique_ptr<Device> out = make_cpu_device({.threads = 1});
  return *out;
}

PlanAnswer answer_of(const RunConfig& config, std::optional<std::int64_t> cap,
                     std::int64_t devices = 4) {
  PlanQuestion question{config, config.parallel.machine, devices, cap};
  question.what_if = false;
  return plan_for(question, [](const RunConfig&) -> Device& { return device(); });
}

/// The whole plan of a choice: seconds and bytes.
std::pair<double, std::int64_t> whole(const RunConfig& base, const PlanChoice& choice) {
  const RunConfig run = with(base, choice);
  WantedPrograms wanted = wanted_programs(RunSetup(run));
  wanted.stages = true;
  const Compiled compiled = compile_programs(RunSetup(run), wanted, device());
  const std::vector<const Plan*> plans = plans_of(compiled);
  std::int64_t peak = 0;
  for (const Plan* plan : plans) peak = std::max(peak, plan->peak_bytes());
  const double seconds =
      predict(plans, kTrainProgram, pipeline_of(plans, kTrainProgram), base.parallel.machine)
          .seconds;
  return {seconds, peak};
}

/// Some knobs are told, so that all plans that are left can be compiled.
RunConfig few_ways() {
  RunConfig out = tiny_run();
  for (const char* field :
       {"context-parallel-size", "sequence-parallel", "pipeline-schedule", "offload-optimizer",
        "offload-gradients", "offload-parameters", "offload-activations", "rank-order"})
    ask(out, field);
  return out;
}

/// On a machine whose transfers go on beside kernels, and on one where they do not.
class PlannerOn : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Overlap, PlannerOn, ::testing::Bool());

TEST_P(PlannerOn, FindsTheBestOfAllPlansUnderEveryCap) {
  RunConfig base = few_ways();
  base.parallel.machine.device.overlap = GetParam();
  const Space space(base, 4, false);
  struct Known {
    double seconds;
    std::int64_t bytes;
    PlanChoice choice;
  };
  std::vector<Known> all;
  for (const PlanChoice& frame : space.frames())
    for (const PlanChoice& split : space.splits(frame))
      for (const PlanChoice& scheduled : space.schedules(split))
        for (const std::int64_t zero : {0, 1, 2, 3})
          for (const Recompute what :
               {Recompute::None, Recompute::Elementwise, Recompute::Selective, Recompute::Full}) {
            if (zero > 0 && scheduled.data == 1) continue;
            PlanChoice choice = scheduled;
            choice.zero = zero;
            choice.recompute = what;
            const auto [seconds, bytes] = whole(base, choice);
            all.push_back({seconds, bytes, choice});
          }
  ASSERT_GT(all.size(), 100U);
  std::int64_t least = all[0].bytes, most = 0;
  for (const Known& each : all) {
    least = std::min(least, each.bytes);
    most = std::max(most, each.bytes);
  }
  double before = std::numeric_limits<double>::infinity();
  for (const double share : {0.05, 0.2, 0.5, 1.0}) {
    const std::int64_t cap =
        least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    const Known* best = nullptr;
    for (const Known& each : all)
      if (each.bytes <= cap && (best == nullptr || each.seconds < best->seconds)) best = &each;
    const PlanAnswer answer = answer_of(base, cap);
    EXPECT_LE(answer.best().seconds(), 1.01 * best->seconds)
        << "cap " << cap << ", best " << to_text(best->choice) << ", chosen "
        << to_text(answer.best().considered.choice);
    EXPECT_LE(answer.best().verdict.peak(), cap);
    // Each is within a hundredth of the best, so that is all that two differ by.
    EXPECT_LE(answer.found.least_seconds(), before * 1.01) << "more memory is not slower";
    before = answer.found.least_seconds();
  }
}

Candidate fitting(double seconds, std::int64_t bytes) {
  Candidate out;
  out.verdict.predicted.seconds = seconds;
  out.verdict.peak_bytes = out.verdict.capped_bytes = {bytes};
  return out;
}

/// Equally fast is told from the fastest alone, so the order in which plans are found is nothing.
TEST(Planner, OfEquallyFastPlansTheSmallestIsChosen) {
  std::vector<std::pair<double, std::int64_t>> all = {
      {1.0, 80}, {1.0005, 60}, {1.0009, 60}, {1.0015, 10}};
  do {
    std::vector<Candidate> fit;
    for (const auto& [seconds, bytes] : all) {
      fit.push_back(fitting(seconds, bytes));
      choose(fit);
    }
    EXPECT_EQ(fit[0].seconds(), 1.0005);
    EXPECT_EQ(fit[1].seconds(), 1.0);
    EXPECT_EQ(fit[3].seconds(), 1.0015);
  } while (std::ranges::next_permutation(all).found);
}

TEST(Planner, TheMarginStaysFree) {
  const RunConfig base = few_ways();
  const std::int64_t peak = answer_of(base, {}).best().verdict.peak();
  PlanQuestion question{base, base.parallel.machine, 4, peak};
  question.what_if = false;
  const auto planned = [&](double margin) {
    question.margin = margin;
    return plan_for(question, [](const RunConfig&) -> Device& { return device(); })
        .best()
        .verdict.peak();
  };
  EXPECT_LE(planned(0), peak);
  EXPECT_LE(planned(10), peak * 9 / 10);
}

TEST(Planner, MoreOfAnythingIsNeverSlower) {
  const RunConfig base = tiny_run();
  const double seconds = answer_of(base, {}).found.least_seconds();
  EXPECT_LE(answer_of(base, {}, 8).found.least_seconds(), seconds * 1.0001) << "devices";
  RunConfig faster = base;
  for (const MachineLevel& level : machine_levels())
    (faster.parallel.machine.*level.link).gigabytes_per_s *= 2;
  EXPECT_LE(answer_of(faster, {}).found.least_seconds(), seconds * 1.0001) << "bandwidth";
}

/// Every field that says a knob, told with a value that the planner does not choose by itself.
TEST(Planner, WhatAFlagSaysStays) {
  struct Case {
    std::vector<std::pair<const char*, const char*>> told;
  };
  const Case cases[] = {
      {{{"devices", "3"}}},
      {{{"data-parallel-size", "2"}}},
      {{{"tensor-model-parallel-size", "2"}}},
      {{{"sequence-parallel", "true"}, {"tensor-model-parallel-size", "2"}}},
      {{{"context-parallel-size", "2"}}},
      {{{"expert-model-parallel-size", "4"}, {"family", "mixtral"}, {"num-experts", "4"}}},
      {{{"pipeline-model-parallel-size", "3"}}},
      {{{"pipeline-schedule", "zb-v"}}},
      {{{"pipeline-schedule", "gpipe"}}},
      {{{"virtual-pipeline-stages", "3"}}},
      {{{"pipeline-layout", "1,3"}, {"recompute-layers", "0,2-3"}}},
      {{{"pipeline-layout", "0,1,2,1"}}},
      {{{"micro-batch-size", "2"}}},
      {{{"zero-stage", "3"}, {"data-parallel-size", "4"}}},
      {{{"zero-stage", "0"}}},
      {{{"optimizer-shard-size", "2"}}},
      {{{"optimizer-shard-threshold", "100"}}},
      {{{"recompute-granularity", "selective"}, {"recompute-layers", "1,3"}}},
      {{{"recompute-granularity", "full"}}},
      {{{"recompute-layers", "1-2"}}},
      {{{"offload-optimizer", "true"}}},
      {{{"offload-gradients", "true"}}},
      {{{"offload-parameters", "true"}}},
      {{{"offload-activations", "true"}}},
      {{{"rank-order", "tp,cp,dp"}}},
      {{{"bf16", "true"}}},
      {{{"fp16", "true"}}},
  };
  std::set<std::string_view> left;
  for (const Knob& knob : knobs()) left.insert(knob.field);
  for (const Case& c : cases) {
    RunConfig base = tiny_run();
    base.micro_batch_size = 0;
    for (const char* usual : {"context-parallel-size", "rank-order", "sequence-parallel"})
      ask(base, usual);  // so that fewer plans are compared
    for (const auto& [name, value] : c.told) {
      set_text(*find_field(name).field, base, value, name);
      ask(base, name);
      left.erase(name);
    }
    complete(base);
    base.parallel.machine = machine();
    PlanQuestion question{base, machine(), 4, {}};
    question.precision = c.told[0].first == std::string_view("bf16");
    question.what_if = false;
    question.limits.whole_plans = 1;
    const PlanAnswer answer =
        plan_for(question, [](const RunConfig&) -> Device& { return device(); });
    for (const auto& [name, value] : c.told) {
      const Field& field = *find_field(name).field;
      const bool size = std::string_view(name) == "data-parallel-size";
      EXPECT_EQ(size ? text(answer.config.parallel.data()) : get_text(field, answer.config), value)
          << name << " in " << to_text(answer.best().considered.choice);
    }
    Problems problems;
    find_problems(answer.config, problems);
    EXPECT_NO_THROW(problems.raise()) << c.told[0].first;
  }
  EXPECT_TRUE(left.empty()) << *left.begin() << " is not tested";
}

/// Switches that say the same by other words.
TEST(Planner, WhatOtherWordsSayStays) {
  RunConfig base = tiny_run();
  base.fsdp = base.checkpoint_activations = true;
  complete(base);
  base.parallel.machine = machine();
  ask(base, "fsdp-memory-optimization");
  ask(base, "checkpoint-activations");
  const PlanAnswer answer = answer_of(base, {});
  EXPECT_TRUE(answer.config.parallel.shard_parameters);
  EXPECT_EQ(answer.config.parallel.recompute, Recompute::Full);
  const std::string flags = join(plan_flags(base, answer.best().considered.choice), " ");
  EXPECT_NE(flags.find("--zero-stage 3"), std::string::npos) << flags;
  EXPECT_EQ(flags.find("fsdp"), std::string::npos) << flags;
}

TEST(Planner, TheSameQuestionHasTheSameAnswer) {
  const RunConfig base = tiny_run();
  const PlanAnswer a = answer_of(base, {}), b = answer_of(base, {});
  EXPECT_EQ(to_text(a.best().considered.choice), to_text(b.best().considered.choice));
  EXPECT_EQ(a.short_models, b.short_models);
}

TEST(Planner, AnswersForPeopleAndPrograms) {
  const RunConfig base = tiny_run();
  PlanQuestion question{base, base.parallel.machine, 4, std::int64_t{1} << 30};
  const PlanAnswer answer =
      plan_for(question, [](const RunConfig&) -> Device& { return device(); });
  const auto json = nlohmann::json::parse(to_json(answer, question));
  EXPECT_EQ(json.at("predicted_step_seconds"), answer.best().seconds());
  EXPECT_EQ(json.at("planned_peak_bytes"), answer.best().verdict.peak());
  for (const std::string flag : json.at("plan")) EXPECT_EQ(flag.find(' '), std::string::npos);
  EXPECT_FALSE(json.at("alternatives").empty());
  const std::string table = to_text(answer, question);
  for (const char* part : {"plan for lab", "time of a step", "memory of a device", "what binds",
                           "other plans", "search:"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  const std::string page = to_html(answer, question);
  EXPECT_NE(page.find("Where ranks lie"), std::string::npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(Planner, SizesThatDoNotGoTogetherAreTold) {
  RunConfig base = tiny_run();
  base.parallel.tensor = 3;
  ask(base, "tensor-model-parallel-size");
  try {
    answer_of(base, {});
    FAIL() << "2 heads on 3 devices";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "no way to run this model on 4 devices is legal: tensor-model-parallel-size 3 does "
        "not divide the model's 2 heads; it can be 1, 2");
  }
}

TEST(Planner, AFlagThatRulesOutAllPlansIsNamed) {
  struct Case {
    std::vector<std::pair<const char*, const char*>> told;
    const char* message;
  };
  const Case cases[] = {
      {{{"pipeline-model-parallel-size", "5"}}, "the sizes that were given take 5"},
      {{{"micro-batch-size", "3"}}, "no divisor works with --micro-batch-size; leave that"},
      {{{"pipeline-layout", "1,2"}}, "has 3 layers"},
      {{{"pipeline-layout", "2,2"}, {"pipeline-model-parallel-size", "1"}},
       "does nothing with pipeline-model-parallel-size 1"},
      {{{"zero-stage", "0"}, {"optimizer-shard-size", "2"}}, "does nothing without ZeRO"},
  };
  for (const Case& c : cases) {
    RunConfig base = tiny_run();
    for (const auto& [name, value] : c.told) {
      set_text(*find_field(name).field, base, value, name);
      ask(base, name);
    }
    complete(base);
    base.parallel.machine = machine();
    try {
      answer_of(base, {});
      ADD_FAILURE() << c.message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos) << error.what();
    }
  }
}

/// Without a search: of a weight, and of all states.
TEST(Planner, ACapThatNoPlanKeepsIsRefusedAtOnce) {
  for (const auto& [cap, told] : {std::pair(1024, "while it is read; raise the cap"),
                                  std::pair(500'000, "if sharded evenly; raise")}) {
    try {
      PlanQuestion question{tiny_run(), machine(), 4, cap};
      question.on_progress = [](const SearchProgress&) { ADD_FAILURE() << "a search"; };
      plan_for(question, [](const RunConfig&) -> Device& { return device(); });
      ADD_FAILURE() << cap << " bytes";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(told), std::string::npos) << error.what();
    }
  }
}

TEST(Planner, ACapThatNothingFitsIsToldWithWhatWouldFit) {
  const RunConfig base = few_ways();
  try {
    answer_of(base, 700'000);
    FAIL() << "700000 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    const std::string what = error.what();
    EXPECT_NE(what.find("(700000 bytes) is below"), std::string::npos) << what;
    EXPECT_NE(what.find("--zero-stage"), std::string::npos) << what;
    EXPECT_NE(what.find("raise the cap"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace tessera
