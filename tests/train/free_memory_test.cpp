/// A run that does not fit into the memory that is free says so before it begins.

#include "tessera/train/free_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tessera/base/proc.h"
#include "tessera/base/text.h"
#include "tessera/train/memory_search.h"
#include "tessera/train/programs.h"
#include "train/tiny_step.h"

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

TEST(FreeMemory, OfAControlGroup) {
  const std::string folder = text(testing::TempDir(), "group");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/memory.max") << "max\n";
  std::ofstream(folder + "/memory.current") << "900\n";
  EXPECT_GT(free_of_group(folder), std::int64_t{1} << 60);
  std::ofstream(folder + "/memory.max") << "1000\n";
  EXPECT_EQ(free_of_group(folder), 100);
  std::ofstream(folder + "/memory.stat")
      << "anon 500\ninactive_file 300\nactive_file 50\nshmem 7\n";
  EXPECT_EQ(free_of_group(folder), 450);
}

RunConfig small_config() {
  RunConfig config;
  config.model = tiny("gpt2");
  config.global_batch_size = 4;
  return config;
}

/// What lies on the host takes main memory all the same.
TEST(FreeMemory, TheHostCountsWhereItIsMainMemory) {
  RunConfig config = small_config();
  config.offload_optimizer = config.offload_parameters = config.offload_activations = true;
  complete(config);
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const MemoryPrice asked = memory_price(config, *device);
  ASSERT_GT(asked.host_bytes, 0);
  const std::int64_t most = asked.peak_bytes + asked.host_bytes / 2;
  RunConfig in_file = config;
  in_file.remote_device = kRemoteFile;
  MemorySearch of_device(in_file, *device, most);
  EXPECT_TRUE(of_device.fits_as_asked());
  MemorySearch of_both(config, *device, most);
  EXPECT_FALSE(of_both.fits_as_asked());
  const std::optional<MemoryCandidate> found = of_both.cheapest();
  if (!found) return;
  EXPECT_LE(of_both.at(*found).peak_bytes + of_both.at(*found).host_bytes, most);
}

TEST(FreeMemory, ARunThatFitsIsNotSpokenOf) {
  RunConfig config = small_config();
  complete(config);
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Compiled compiled =
      compile_programs(RunSetup(config), wanted_programs(RunSetup(config)), *device);
  EXPECT_EQ(short_of_memory(config, compiled.plan, *device, nullptr), "");
  Plan large = compiled.plan;
  large.state_bytes.device = std::int64_t{1} << 50;
  const std::string told = short_of_memory(config, large, *device, nullptr);
  EXPECT_NE(told.find("a device of this run takes 1024 TiB"), std::string::npos) << told;
  EXPECT_NE(told.find("it fits with --recompute-granularity elementwise --micro-batch-size 4"),
            std::string::npos)
      << told;
}

}  // namespace
}  // namespace tessera
