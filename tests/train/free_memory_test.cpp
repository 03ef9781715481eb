/// A run that does not fit into the memory that is free says so before it begins.

#include "tessera/train/free_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/train/programs.h"

namespace tessera {
namespace {

TEST(FreeMemory, IsWhatTheSystemSays) {
  const std::string file = text(testing::TempDir(), "meminfo");
  std::ofstream(file) << "MemTotal:       24000 kB\nMemAvailable:    20000 kB\n";
  EXPECT_EQ(proc_bytes(file, "MemAvailable:"), 20000 * 1024);
  EXPECT_EQ(proc_bytes(file, "MemFree:"), 0);
  EXPECT_EQ(proc_bytes(file + ".absent", "MemFree:"), 0);
  EXPECT_GT(free_memory_bytes(), 0);
}

TEST(FreeMemory, OfTheMachineThatLacksMost) {
  EXPECT_EQ(shortage_of({{"a", 60, 100}, {"a", 40, 100}}).ranks, 0);
  EXPECT_EQ(shortage_of({{"a", 60, 0}}).ranks, 0);  // nobody knows
  const Shortage found =
      shortage_of({{"a", 60, 100}, {"b", 90, 100}, {"a", 50, 90}, {"b", 90, 100}, {"c", 9, 100}});
  EXPECT_EQ(found.machine, "b");
  EXPECT_EQ(found.ranks, 2);
  EXPECT_EQ(found.wanted_bytes, 180);
  EXPECT_EQ(found.free_bytes, 100);
}

TEST(FreeMemory, ARunThatFitsIsNotSpokenOf) {
  RunConfig config;
  config.model.family = "gpt2";
  config.model.layers = 2;
  config.model.heads = 2;
  config.model.width = 16;
  config.model.context = 8;
  config.model.vocabulary = 19;
  config.global_batch_size = 4;
  complete(config);
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Compiled compiled = compile_programs(config, wanted_programs(config), *device);
  EXPECT_EQ(short_of_memory(config, compiled.plan, *device, nullptr), "");
  Plan large = compiled.plan;
  large.state_bytes.device = std::int64_t{1} << 50;
  const std::string told = short_of_memory(config, large, *device, nullptr);
  EXPECT_NE(told.find("a device of this run takes 1024 TiB"), std::string::npos) << told;
  EXPECT_NE(told.find("it fits with --recompute-granularity none --micro-batch-size 4"),
            std::string::npos)
      << told;
}

}  // namespace
}  // namespace tessera
