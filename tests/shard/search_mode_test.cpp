// Strategies that are searched: what is found is what is compiled, and the numbers are those of one
// device.
#include <gtest/gtest.h>

#include <map>

#include "machine_line.h"
#include "shard/one_device.h"
#include "shard/two_matmuls.h"
#include "tessera/ir/op_paths.h"
#include "tessera/ops/collective.h"
#include "tessera/shard/shard.h"

namespace tessera {
namespace {

using test::expect_equals_one_device;
using test::gpt2_step;
using test::kVocabulary;
using test::placed_of;
using test::TwoMatmuls;

constexpr SearchMode kSearches[] = {SearchMode::DynamicProgramming,
                                    SearchMode::RecursiveProgramming};

/// Where work counts most, where moving does, and where a server has fast links inside.
const char* const kMachines[] = {
    "core=1GB/s+0us compute=0.5GFLOP/s memory=0.5GB/s",
    "core=1GB/s+0us compute=2GFLOP/s memory=8GB/s",
    "core=15GB/s+1us compute=100GFLOP/s memory=20GB/s",
};

AutoParallel searching(SearchMode mode, std::int64_t devices, const char* machine) {
  AutoParallel out;
  out.mode = ParallelMode::AutoParallel;
  out.search_mode = mode;
  out.device_num = devices;
  out.machine = parse_machine(machine);
  return out;
}

/// Each op of the forward pass lies in the placed graph as the strategy pins it.
void expect_compiled_as_searched(const Graph& step, const AutoParallel& options) {
  const ParallelStep found = parallelize(step, options);
  const Graph placed = placed_of(step, options);
  std::map<std::string, NodeId> nodes;
  const std::vector<std::string> paths = op_paths(placed);
  for (NodeId id = 0; id < placed.size(); ++id) nodes[paths[static_cast<std::size_t>(id)]] = id;
  int compared = 0;
  for (const OpPin& pin : found.strategy.ops) {
    // What is written as other ops, as a norm across ranks, shifts the numbers of those.
    if (!nodes.contains(pin.op) || matches("loss.*", pin.op)) continue;
    const Node& node = placed.node(nodes[pin.op]);
    ASSERT_EQ(node.inputs.size(), pin.ins.size()) << pin.op;
    for (std::size_t i = 0; i < pin.ins.size(); ++i)
      EXPECT_EQ(placed.result(node.inputs[i]).placement->sharding, pin.ins[i])
          << pin.op << ", operand " << i;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(SearchModes, NumbersAreThoseOfOneDevice) {
  for (const char* machine : kMachines) {
    for (const SearchMode mode : kSearches) {
      for (const std::int64_t devices : {2, 4, 6, 8, 16}) {
        for (const auto dataset :
             {DatasetStrategy::Kind::DataParallel, DatasetStrategy::Kind::FullBatch}) {
          SCOPED_TRACE(text(to_text(mode), " on ", devices, " devices, ", machine));
          AutoParallel options = searching(mode, devices, machine);
          options.dataset_strategy.kind = dataset;
          TwoMatmuls net(48);
          const Graph step = net.step();
          expect_equals_one_device(step, options);
          expect_compiled_as_searched(step, options);
        }
      }
    }
  }
}

TEST(SearchModes, ATransformerBlock) {
  for (const char* machine : kMachines) {
    for (const SearchMode mode : kSearches) {
      SCOPED_TRACE(text(to_text(mode), " on ", machine));
      const AutoParallel options = searching(mode, 8, machine);
      const Graph step = gpt2_step();
      expect_equals_one_device(step, options, kVocabulary);
      expect_compiled_as_searched(step, options);
    }
  }
}

TEST(SearchModes, DynamicProgrammingIsNeverWorse) {
  for (const char* machine : kMachines) {
    SCOPED_TRACE(machine);
    const Graph step = gpt2_step();
    const SearchReport best =
        *parallelize(step, searching(SearchMode::DynamicProgramming, 8, machine)).search;
    const SearchReport quick =
        *parallelize(step, searching(SearchMode::RecursiveProgramming, 8, machine)).search;
    EXPECT_EQ(best.gap, 0);
    EXPECT_EQ(best.bound, best.step_seconds);
    EXPECT_LE(best.step_seconds, quick.step_seconds);
    std::printf("%s: dynamic_programming %.9f s, recursive_programming %.2f %% above it\n", machine,
                best.step_seconds, 100 * (quick.step_seconds / best.step_seconds - 1));
  }
}

TEST(SearchModes, WhatTheUserSaidStays) {
  for (const SearchMode mode : kSearches) {
    TwoMatmuls net;
    shard(net.first, {{2, 4}, {4, 1}});
    AutoParallel options = searching(mode, 8, kMachines[0]);
    options.shards = shards_of(net.builder);
    const Graph step = net.step();
    const ParallelStep found = parallelize(step, options);
    EXPECT_EQ(to_text(found.strategy.mesh), "d0=2 d1=2 d2=2");
    bool met = false;
    for (const OpPin& pin : found.strategy.ops) {
      if (pin.op != "matmul") continue;
      met = true;
      EXPECT_EQ(to_text(pin.ins[0]), "[d0,d1.d2]");
      EXPECT_EQ(to_text(pin.ins[1]), "[d1.d2,-]");
    }
    EXPECT_TRUE(met);
    expect_equals_one_device(step, options);
  }
}

TEST(SearchModes, ALimitOfMemory) {
  AutoParallel options = searching(SearchMode::DynamicProgramming, 8,
                                   "core=0.1GB/s+0us compute=10GFLOP/s memory=10GB/s");
  TwoMatmuls net;
  const Graph step = net.step();
  const SearchReport free = *parallelize(step, options).search;
  options.memory_cap = 0.8 * free.bytes;
  const SearchReport within = *parallelize(step, options).search;
  EXPECT_LE(within.bytes, options.memory_cap);
  EXPECT_GE(within.step_seconds, free.step_seconds);
  EXPECT_GE(within.bound, free.bound);
  expect_equals_one_device(step, options);
}

}  // namespace
}  // namespace tessera
