/// Plans of models with experts: over how many devices these are shared out.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "planner/small_run.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/problems.h"
#include "tessera/device/device.h"
#include "tessera/planner/planner.h"
#include "tessera/planner/space.h"

namespace tessera {
namespace {

constexpr std::int64_t kDevices = 8;

/// Nearly all of its parameters are those of experts.
RunConfig many_experts() { return small_run({2, 2, 256, 32, 96, 16, "h100-256", false, 32}); }

void tell(RunConfig& config, std::string_view field) {
  config.given[std::string(field)] = text("--", field);
}

PlanAnswer plan_of(const RunConfig& base, std::optional<std::int64_t> cap) {
  static const std::unique_ptr<Device> device = make_described_device();
  PlanQuestion question{base, base.parallel.machine, kDevices, cap};
  question.what_if = false;
  return plan_for(question, [](const RunConfig&) -> Device& { return *device; });
}

const PlanChoice& chosen(const PlanAnswer& answer) { return answer.best().considered.choice; }

/// Of data parallel runs without ZeRO, whose experts alone make the difference.
RunConfig data_parallel() {
  RunConfig out = many_experts();
  for (const char* field :
       {"devices", "tensor-model-parallel-size", "context-parallel-size",
        "pipeline-model-parallel-size", "zero-stage", "offload-optimizer", "offload-gradients",
        "offload-parameters", "offload-activations", "rank-order"})
    tell(out, field);
  out.parallel.devices = kDevices;
  return out;
}

TEST(ExpertsPlan, ACapThatOnlySharesOfExpertsKeepIsKept) {
  RunConfig base = data_parallel();
  RunConfig whole = base;
  tell(whole, "expert-model-parallel-size");
  const std::int64_t of_whole = plan_of(whole, std::nullopt).best().verdict.peak();
  const std::int64_t cap = of_whole / 3;
  EXPECT_THROW(plan_of(whole, cap), Error);
  const PlanAnswer answer = plan_of(base, cap);
  EXPECT_GE(chosen(answer).experts, 4);
  EXPECT_LE(answer.best().verdict.peak(), cap);
  EXPECT_EQ(answer.config.parallel.experts, chosen(answer).experts);
}

TEST(ExpertsPlan, WhatIsToldStays) {
  RunConfig base = many_experts();
  base.parallel.experts = 2;
  tell(base, "expert-model-parallel-size");
  EXPECT_EQ(chosen(plan_of(base, std::nullopt)).experts, 2);
}

TEST(ExpertsPlan, OneIsNeverSlowerThanWithTheirSizeTold) {
  RunConfig base = many_experts();
  const double best = plan_of(base, std::nullopt).found.least_seconds();
  for (const std::int64_t experts : {1, 2, 4, 8}) {
    base.parallel.experts = experts;
    tell(base, "expert-model-parallel-size");
    EXPECT_LE(best, 1.004 * plan_of(base, std::nullopt).found.least_seconds()) << experts;
  }
}

struct SpaceCase {
  const char* name;
  std::int64_t experts, samples, shard_size;
};
const SpaceCase kSpaceCases[] = {
    {"more experts than devices", 32, 1, 0},      {"as few experts as three", 3, 1, 0},
    {"balanced over groups of samples", 8, 4, 0}, {"states in groups", 8, 1, 4},
    {"a model without experts", 0, 1, 0},
};

/// Against every size and micro-batch whose run has no problems.
TEST(ExpertsPlan, AllThatIsLegalIsCompared) {
  using Sizes = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  for (const SpaceCase& c : kSpaceCases) {
    SCOPED_TRACE(c.name);
    RunConfig base = small_run({2, 2, 64, 32, 96, 16, "h100-256", false, c.experts});
    base.model.experts.samples = c.samples;
    for (const char* field : {"tensor-model-parallel-size", "context-parallel-size",
                              "pipeline-model-parallel-size", "zero-stage"})
      tell(base, field);
    if (c.shard_size > 0) {
      base.parallel.shard_size = c.shard_size;
      base.zero_stage = 1;
      complete(base);
      tell(base, "optimizer-shard-size");
    }
    const Space space(base, kDevices, false);
    std::set<Sizes> found, legal;
    for (const PlanChoice& frame : space.frames())
      for (const PlanChoice& split : space.splits(frame))
        found.insert({split.data, split.experts, split.micro_batch_size});
    for (const std::int64_t data : {1, 2, 4, 8}) {
      for (std::int64_t experts = 1; experts <= kDevices; ++experts) {
        for (std::int64_t micro = 1; micro * data <= base.global_batch_size; micro *= 2) {
          PlanChoice choice{.data = data, .experts = experts, .micro_batch_size = micro};
          choice.zero = base.zero_stage;
          choice.shard_size = c.shard_size;
          Problems told;
          find_problems(with(base, choice), told);
          if (told.empty()) legal.insert({data, experts, micro});
        }
      }
    }
    EXPECT_EQ(found, legal);
    EXPECT_FALSE(found.empty());
  }
}

TEST(ExpertsPlan, SizesAreToldInFlagsAndWords) {
  const PlanChoice choice{.data = 4, .experts = 2};
  const RunConfig experts = many_experts(), none = small_run({2, 2, 64, 32, 96, 16});
  const std::string flags = plan_text(experts, choice);
  EXPECT_NE(flags.find("--expert-model-parallel-size 2 "), std::string::npos) << flags;
  EXPECT_EQ(to_text(choice), "dp 4, experts over 2, micro-batch 1, recompute elementwise");
  EXPECT_EQ(plan_text(none, {}).find("expert"), std::string::npos);
}

}  // namespace
}  // namespace tessera
