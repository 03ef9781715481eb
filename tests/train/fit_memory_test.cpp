/// The memory cap: what is chosen fits, takes nothing back, and computes the same.

#include "tessera/train/fit_memory.h"

#include <gtest/gtest.h>

#include "tessera/train/facts.h"
#include "tessera/train/presets.h"
#include "tessera/train/programs.h"

namespace tessera {
namespace {

RunConfig capped(const std::string& cap) {
  RunConfig out;
  find_preset("gpt2-tiny").apply(out);
  out.model.vocabulary = 61;
  out.threads = 1;
  out.memory_cap = cap;
  return out;
}

RankFacts planned(RunConfig config, Device& device) {
  complete(config);
  WantedPrograms wanted = wanted_programs(config);
  wanted.stages = true;
  std::vector<RankFacts> stages;
  const Compiled compiled = compile_programs(config, wanted, device);
  for (const Plan* plan : plans_of(compiled)) stages.push_back(facts_of(*plan));
  return together(stages);
}

TEST(MemoryCap, IsReadInUnits) {
  EXPECT_EQ(parse_memory_cap("none"), std::nullopt);
  EXPECT_EQ(parse_memory_cap("10GiB"), std::int64_t{10} << 30);
  EXPECT_EQ(parse_memory_cap("8GB"), 8'000'000'000);
  EXPECT_EQ(parse_memory_cap("1.5kB"), 1500);
  EXPECT_EQ(parse_memory_cap("123"), 123);
  for (const char* wrong : {"", "GB", "-1GB", "0", "1 GB", "1gb", "1GBs", "nan", "inf", "1e30"})
    EXPECT_THROW(parse_memory_cap(wrong), Error) << wrong;
}

/// From a cap that changes nothing down to one that nothing meets.
TEST(MemoryCap, WhatIsChosenFits) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const std::int64_t stages : {1, 2}) {
    RunConfig asked = capped("none");
    asked.parallel.devices = asked.parallel.pipeline = stages;
    asked.micro_batch_size = 4;
    complete(asked);
    const std::int64_t whole = planned(asked, *device).peak_bytes;
    std::int64_t met = 0;
    for (const std::int64_t percent : {100, 90, 75, 60, 45, 30, 15, 5, 1}) {
      RunConfig config = asked;
      const std::int64_t cap = whole * percent / 100;
      config.memory_cap = text(cap);
      try {
        const std::string told = fit_memory(config, *device);
        EXPECT_EQ(told.empty(), percent == 100) << told;
        EXPECT_LE(planned(config, *device).peak_bytes, cap) << told;
        EXPECT_EQ(fit_memory(config, *device), "") << "chosen once, it fits";
        ++met;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::Usage);
        EXPECT_NE(std::string(error.what()).find("the least that a device can do with"),
                  std::string::npos)
            << error.what();
      }
    }
    EXPECT_GT(met, 4);
    EXPECT_LT(met, 9);
  }
}

TEST(MemoryCap, TakesNothingBack) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  RunConfig asked = capped("none");
  asked.checkpoint_activations = asked.offload_parameters = true;
  asked.micro_batch_size = 2;
  complete(asked);
  RunConfig config = asked;
  config.memory_cap = text(planned(asked, *device).peak_bytes - 1);
  EXPECT_NE(fit_memory(config, *device), "");
  EXPECT_EQ(config.parallel.recompute, Recompute::Full);
  EXPECT_TRUE(config.parallel.offload.parameters);
  EXPECT_LE(config.micro_batch_size, 2);
}

}  // namespace
}  // namespace tessera
