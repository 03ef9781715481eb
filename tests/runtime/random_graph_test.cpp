/// Graph fuzzing: random train steps, compiled in several ways and run on the CPU device, against
/// the interpreter.
///
/// More of them, from a seed on: TESSERA_FUZZ="FIRST COUNT" runtime_test --gtest_filter='*Asked*'

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "runtime/random_check.h"
#include "tessera/ops/table.h"

namespace tessera::fuzz {
namespace {

void check_seeds(std::uint64_t first, std::uint64_t count, Tally& tally) {
  const Checker checker;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const int ops = random_size(seed);
    const std::string what = checker.wrong(seed, ops, tally);
    if (!what.empty())
      ADD_FAILURE() << "seed " << seed << ", " << ops << " ops: " << what
                    << "\nat its smallest: " << checker.smallest_failure(seed, ops);
  }
}

void print(const Tally& tally) {
  std::cout << tally.graphs << " graphs, " << tally.plans << " plans, " << tally.mixing
            << " graphs mix rows, " << tally.refused << " cuts refused, " << tally.compared
            << " numbers, " << tally.loose << " loose bounds\n";
}

class RandomGraphs : public testing::TestWithParam<int> {};

TEST_P(RandomGraphs, CompiledEqualsInterpreted) {
  constexpr int kSeeds = 40;
  Tally tally;
  check_seeds(static_cast<std::uint64_t>(GetParam() * kSeeds), kSeeds, tally);
  print(tally);
  EXPECT_LE(tally.mixing * 2, tally.graphs) << "most graphs must be legal for every cut";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, testing::Range(0, 8));

TEST(MoreRandomGraphs, Asked) {
  const char* asked = std::getenv("TESSERA_FUZZ");
  if (asked == nullptr) GTEST_SKIP() << "set TESSERA_FUZZ to \"FIRST COUNT\"";
  std::uint64_t first = 0, count = 0;
  std::istringstream(asked) >> first >> count;
  Tally tally;
  check_seeds(first, count, tally);
  print(tally);
  for (const auto& [op, graphs] : tally.ops) std::cout << op << " " << graphs << "\n";
}

TEST(MoreRandomGraphs, MeetEveryOp) {
  std::set<std::string_view> met;
  for (std::uint64_t seed = 0; seed < 320; ++seed) {
    const Graph graph = random_graph(seed, random_size(seed)).graph;
    for (const Node& node : graph.nodes()) met.insert(node.op->name);
  }
  for (const OpDef* op : all_ops()) {
    // Made by passes only.
    if (op->name == "slot" || op->name == "receive" || op->name == "fused" || op->traits.inserted)
      continue;
    EXPECT_TRUE(met.contains(op->name)) << op->name;
  }
}

}  // namespace
}  // namespace tessera::fuzz
