// Graphs of decisions made by hand or at random, against all their picks.
#include "tessera/search/solve.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "search/brute_force.h"
#include "search/graph_json.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/search/repeats.h"

namespace tessera {
namespace {

using test::brute_force;

std::shared_ptr<const CostTable> random_table(int rows, int columns, std::mt19937& random) {
  CostTable out{rows, columns, {}};
  for (int i = 0; i < rows * columns; ++i)
    out.costs.push_back(random() % 8 == 0 ? kNever : static_cast<Cost>(random() % 1000));
  return std::make_shared<const CostTable>(std::move(out));
}

std::shared_ptr<const Options> random_options(int n, std::mt19937& random) {
  Options out;
  for (int i = 0; i < n; ++i) {
    out.costs.push_back(static_cast<Cost>(random() % 1000));
    out.bytes.push_back(static_cast<double>(random() % 100));
  }
  return std::make_shared<const Options>(std::move(out));
}

DecisionGraph random_graph(int decisions, int most, double density, std::mt19937& random) {
  DecisionGraph out;
  for (int i = 0; i < decisions; ++i)
    out.decisions.push_back(
        {text("d", i), "",
         random_options(1 + static_cast<int>(random() % static_cast<unsigned>(most)), random)});
  for (int i = 0; i < decisions; ++i) {
    for (int j = i + 1; j < decisions; ++j) {
      if (static_cast<double>(random() % 1000) >= density * 1000) continue;
      out.links.push_back({i, j,
                           random_table(out.decisions[at(i)].options->size(),
                                        out.decisions[at(j)].options->size(), random)});
    }
  }
  return out;
}

/// So many equal blocks of three decisions, each linked with the block before and with the first
/// decision of all; one before them, and one behind.
DecisionGraph blocks(int n, std::mt19937& random) {
  DecisionGraph out;
  const auto border = random_options(3, random), inside = random_options(4, random),
             shared = random_options(2, random);
  const auto between = random_table(3, 3, random), in = random_table(3, 4, random),
             to = random_table(4, 3, random), first = random_table(2, 4, random),
             self = random_table(3, 3, random);
  out.decisions.push_back({"shared", "", shared});
  out.decisions.push_back({"start", "", border});
  for (int b = 0; b < n; ++b) {
    const std::string block = text("layers.", b);
    const int before = out.size() - 1, here = out.size();
    out.decisions.push_back({"a", block, border});
    out.decisions.push_back({"b", block, inside});
    out.decisions.push_back({"c", block, border});
    out.links.push_back({before, here, between});
    out.links.push_back({here, here + 1, in});
    out.links.push_back({0, here + 1, first});
    out.links.push_back({here + 1, here + 2, to});
    out.links.push_back({here, here + 2, self});
  }
  out.decisions.push_back({"end", "", border});
  out.links.push_back({out.size() - 2, out.size() - 1, between});
  return out;
}

TEST(Solve, RandomGraphsEqualAllTheirPicks) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const DecisionGraph graph = random_graph(1 + i % 8, 5, 0.1 + 0.1 * (i % 8), random);
    const Solution found = solve(graph);
    const Cost least = brute_force(graph).cost;
    EXPECT_EQ(found.bound, least);
    if (least == kNever) continue;
    EXPECT_EQ(found.cost, least);
    EXPECT_EQ(found.gap(), 0);
  }
}

TEST(Solve, EqualBlocksAreFolded) {
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    for (const int n : {1, 2, 3, 4, 5, 9, 24}) {
      SCOPED_TRACE(text(i, " of ", n));
      std::mt19937 same(static_cast<unsigned>(100 + i));
      const DecisionGraph graph = blocks(n, same);
      SolveLimits flat;
      flat.fold = false;
      const Solution folded = solve(graph), unfolded = solve(graph, flat);
      EXPECT_EQ(folded.bound, unfolded.bound);
      if (unfolded.bound == kNever) continue;
      EXPECT_EQ(folded.cost, folded.bound);
      EXPECT_EQ(unfolded.cost, unfolded.bound);
      // The last block is linked with what follows, the first with what is before it.
      EXPECT_EQ(folded.folded, n >= 4 ? 3 * (n - 2) : 0);
      EXPECT_EQ(unfolded.folded, 0);
    }
  }
}

TEST(Solve, WhatIsTooLargeHasABound) {
  std::mt19937 random(5);
  double gaps = 0, above = 0;
  int bounded = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    DecisionGraph graph = random_graph(8, 4, 0.6, random);
    const Cost least = brute_force(graph).cost;
    if (least == kNever) continue;
    SolveLimits small;
    small.table = 16;
    const Solution found = solve(graph, small);
    EXPECT_LE(found.bound, least);
    EXPECT_GE(found.cost, least);
    EXPECT_LE(found.largest_table, 16);
    gaps += (least - found.bound) / least;
    above += found.cost < kNever ? (found.cost - least) / least : 1;
    ++bounded;
  }
  std::printf("bounds %.1f %% below the best, picks %.1f %% above it\n", 100 * gaps / bounded,
              100 * above / bounded);
  EXPECT_GT(bounded, 30);
  EXPECT_LT(gaps / bounded, 0.15);
  EXPECT_LT(above / bounded, 0.02);
}

/// A function over two variables that is 0 everywhere.
CostFunction nothing(int a, int b, const std::vector<int>& sizes) {
  return {{a, b},
          std::make_shared<const std::vector<Cost>>(at(sizes[at(a)]) * at(sizes[at(b)]), Cost{0})};
}

TEST(Solve, TablesTooLargeToCountComeLast) {
  // A star: its middle first would take 4^26 * 2048 = 2^63 entries, its leaves take a few each.
  std::vector<int> sizes(26, 4);
  sizes.push_back(2048);
  std::vector<CostFunction> functions;
  for (int leaf = 1; leaf < 27; ++leaf) functions.push_back(nothing(0, leaf, sizes));
  const Elimination done(sizes, functions, {}, 1 << 14);
  EXPECT_TRUE(done.exact());
  EXPECT_EQ(done.largest_table(), 4 * 2048);
}

TEST(Solve, RunsWithTooManyStatesAreNotFolded) {
  // 2^30 states outside and 317^2 at a border: a table of 1.08e19 entries.
  Repeat repeat;
  std::vector<int> sizes(30, 2);
  for (int i = 0; i < 30; ++i) repeat.outside.push_back(i);
  repeat.borders = {0, 1};
  std::vector<CostFunction> functions;
  for (int block = 0; block < 3; ++block) {
    const int first = static_cast<int>(sizes.size());
    sizes.insert(sizes.end(), {317, 317});
    if (block == 0) {
      repeat.before = {first, first + 1};
      continue;
    }
    repeat.blocks.push_back({first, first + 1});
    for (const int border : {0, 1})
      functions.push_back(nothing(first - 2 + border, first + border, sizes));
    for (const int outside : repeat.outside) functions.push_back(nothing(outside, first, sizes));
  }
  const std::size_t before = functions.size();
  const FoldedRun run(repeat, sizes, functions, 1 << 25);
  EXPECT_FALSE(run.folds());
  EXPECT_EQ(functions.size(), before);
}

TEST(Solve, KeepsToBytes) {
  std::mt19937 random(11);
  double gaps = 0, above = 0;
  int within = 0, none = 0;
  for (int i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    const DecisionGraph graph = random_graph(6, 5, 0.4, random);
    const Solution free = solve(graph);
    if (free.cost == kNever) continue;
    SolveLimits limits;
    limits.bytes = free.bytes * 0.8;
    const test::BruteForce best = brute_force(graph, limits.bytes);
    const Solution found = solve(graph, limits);
    EXPECT_LE(found.bound, best.cost);
    if (best.cost == kNever) {
      EXPECT_EQ(found.cost, kNever);
      EXPECT_EQ(found.bound, kNever);
      EXPECT_GT(found.bytes, limits.bytes);
      ++none;
      continue;
    }
    ASSERT_LT(found.cost, kNever);
    ++within;
    EXPECT_LE(found.bytes, limits.bytes);
    EXPECT_GE(found.cost, best.cost);
    gaps += found.gap();
    above += (found.cost - best.cost) / best.cost;
  }
  EXPECT_GT(within, 50);
  EXPECT_LT(gaps / within, 0.05);
  std::printf("%d within the limit, mean gap %.2f %%, %.2f %% above the best; %d without picks\n",
              within, 100 * gaps / within, 100 * above / within, none);
}

/// Cheap options keep much, in parts of which each rounds on its own.
TEST(Solve, BoundsWithinBytesAreNeverAboveTheBest) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    DecisionGraph graph;
    for (int d = 0; d < 9; ++d) {
      Options options;
      for (int o = 0; o < 3; ++o) {
        options.costs.push_back(static_cast<Cost>(2 * o));
        options.bytes.push_back(static_cast<double>(40 - 15 * o) +
                                static_cast<double>(random() % 10));
      }
      graph.decisions.push_back({text("d", d), "", std::make_shared<const Options>(options)});
    }
    SolveLimits limits;
    limits.bytes = 0.7 * solve(graph).bytes;
    EXPECT_LE(solve(graph, limits).bound, brute_force(graph, limits.bytes).cost);
  }
}

TEST(Solve, WithoutPicksNothingIsFoundAtAnyPrice) {
  DecisionGraph graph;
  for (const char* name : {"a", "b"})
    graph.decisions.push_back(
        {name, "", std::make_shared<const Options>(Options{{1, 2}, {20, 10}})});
  graph.links.push_back(
      {0, 1, std::make_shared<const CostTable>(CostTable{2, 2, {kNever, kNever, kNever, kNever}})});
  SolveLimits limits;
  limits.bytes = 15;
  const Solution found = solve(graph, limits);
  EXPECT_EQ(found.cost, kNever);
  EXPECT_EQ(found.bound, kNever);
}

/// Time grows with the decisions, not with their square: where nothing folds, and where picks of
/// two prices are mixed.
TEST(Solve, LongChainsTakeLittle) {
  constexpr int kDecisions = 10'000;
  std::mt19937 random(13);
  DecisionGraph graph;
  for (int i = 0; i < kDecisions; ++i) {
    graph.decisions.push_back({text("d", i), "", random_options(3, random)});
    if (i > 0) graph.links.push_back({i - 1, i, random_table(3, 3, random)});
  }
  const std::clock_t start = std::clock();
  const Solution free = solve(graph);
  ASSERT_LT(free.cost, kNever);
  EXPECT_EQ(free.gap(), 0);
  SolveLimits limits;
  limits.bytes = 0.8 * free.bytes;
  const Solution within = solve(graph, limits);
  EXPECT_LE(within.bytes, limits.bytes);
  EXPECT_LT(within.gap(), 1e-3);
  limits.bytes = 10;
  EXPECT_EQ(solve(graph, limits).bound, kNever);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("gap within bytes %.4f %%, %.2f s\n", 100 * within.gap(), seconds);
  EXPECT_LT(seconds, 10);  // 1 in a release build; sanitizers take longer
}

TEST(Solve, NamesRepeats) {
  std::mt19937 random(1);
  const std::vector<Repeat> repeats = find_repeats(blocks(6, random));
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].blocks.size(), 4u);
  EXPECT_EQ(repeats[0].borders, std::vector<int>{2});
  EXPECT_EQ(repeats[0].outside, std::vector<int>{0});
}

TEST(Solve, WritesJson) {
  DecisionGraph graph;
  graph.decisions.push_back({"a", "", std::make_shared<const Options>(Options{{1, 2}, {}})});
  graph.decisions.push_back({"b", "", std::make_shared<const Options>(Options{{3}, {4}})});
  graph.links.push_back({0, 1, std::make_shared<const CostTable>(CostTable{2, 1, {5, kNever}})});
  EXPECT_EQ(test::to_json(graph),
            "{\"decisions\":[{\"name\":\"a\",\"costs\":[1,2],\"bytes\":[]},\n"
            "{\"name\":\"b\",\"costs\":[3],\"bytes\":[4]}],\n"
            "\"links\":[{\"from\":0,\"to\":1,\"costs\":[5,null]}]}\n");
}

}  // namespace
}  // namespace tessera
