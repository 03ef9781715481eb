// Blocks: which path is one, and which of them are the same.
#include "tessera/ir/blocks.h"

#include <gtest/gtest.h>

#include "ir/small_ops.h"

namespace tessera {
namespace {

TEST(Blocks, ABlockEndsAtItsNumber) {
  EXPECT_EQ(block_of("layers.7.attn.qkv"), "layers.7");
  EXPECT_EQ(block_of("layers.7"), "layers.7");
  EXPECT_EQ(block_of("encoder.layers.12.experts.3.up"), "encoder.layers.12");
  EXPECT_EQ(block_of("encoder.layers.12.experts.3.up", 2), "encoder.layers.12.experts.3");
  EXPECT_EQ(block_of("encoder.layers.12.up", 2), "");
  EXPECT_EQ(block_of("7"), "7");
  EXPECT_EQ(block_of("head"), "");
  EXPECT_EQ(block_of("conv2d.x7"), "");
  EXPECT_EQ(block_of(""), "");
  EXPECT_EQ(block_of("a..b."), "");
}

struct PathCase {
  const char *line, *result;
};
const PathCase kPaths[] = {
    {"layers.1", "layers.2"},
    {"layers.1.w", "layers.2.w"},
    {"grad layers.1.w, layers.1", "grad layers.2.w, layers.2"},
    {"layers.10.w", "layers.10.w"},
    {"old.layers.1.w", "old.layers.1.w"},
    {"players.1", "players.1"},
    {"", ""},
};

TEST(Blocks, PathsAreReplacedAsAWhole) {
  for (const PathCase& c : kPaths)
    EXPECT_EQ(replace_path(c.line, "layers.1", "layers.2"), c.result) << c.line;
  EXPECT_EQ(replace_path("as it is", "", "x"), "as it is");
}

std::vector<std::vector<std::string>> names(const std::vector<BlockClass>& classes) {
  std::vector<std::vector<std::string>> out;
  for (const BlockClass& c : classes) {
    out.emplace_back();
    for (const Block& block : c.blocks) out.back().push_back(block.path);
  }
  return out;
}

TEST(Blocks, LayersOfAModelAreOneClass) {
  const Graph graph = layered_graph(5, 4, true);
  const std::vector<BlockClass> classes = block_classes(graph);
  ASSERT_EQ(names(classes), (std::vector<std::vector<std::string>>{
                                {"layers.0", "layers.1", "layers.2", "layers.3", "layers.4"}}));
  // Forward, backward and update together, and nodes correspond.
  for (const Block& block : classes[0].blocks) {
    ASSERT_EQ(block.nodes.size(), 12u);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(graph.node(block.nodes[i]).op, graph.node(classes[0].blocks[0].nodes[i]).op);
    }
  }
}

/// Blocks b.0 .. b.4, each x + x, then + the first of these; `change` may spoil the two nodes of
/// one block.
template <typename Change>
Graph five_blocks(const Change& change) {
  Builder b;
  Value x = b.batch("x", {DType::F32, {2}, {}});
  const Value other = b.batch("other", {DType::F32, {2}, {}});
  for (int i = 0; i < 5; ++i) {
    const Scope scope(b, text("b.", i), {});
    const Value first = b.add(kTestMany, {x},
                              {std::int64_t{1}, 0.5, true, text("b.", i, ".key"),
                               std::vector<std::int64_t>{}, std::vector<double>{}, DType::F32});
    const Value second = b.add(kTestAdd, {first, x});
    if (i == 2) {
      x = change(b, first, second, x, other);
    } else {
      x = second;
    }
  }
  return b.finish();
}

TEST(Blocks, WhateverDiffersMakesAClassOfItsOwn) {
  using V = Value;
  const std::vector<std::vector<std::string>> all = {{"b.0", "b.1", "b.2", "b.3", "b.4"}};
  const std::vector<std::vector<std::string>> apart = {{"b.0", "b.1", "b.3", "b.4"}, {"b.2"}};
  const auto same = [](Builder&, V, V second, V, V) { return second; };
  const auto longer = [](Builder& b, V, V second, V, V) {
    return b.add(kTestAdd, {second, second});
  };
  const auto named = [](Builder& b, V first, V second, V, V) {
    b.set_name(first, "odd");
    return second;
  };
  const auto liked = [](Builder& b, V first, V second, V, V) {
    b.set_like(second, first.id().node);
    return second;
  };
  EXPECT_EQ(names(block_classes(five_blocks(same))), all);
  EXPECT_EQ(names(block_classes(five_blocks(longer))), apart);
  EXPECT_EQ(names(block_classes(five_blocks(named))), apart);
  EXPECT_EQ(names(block_classes(five_blocks(liked))), apart);
}

TEST(Blocks, WiringCountsButNotTheSourceLine) {
  const auto build = [](bool outside) {
    Builder b;
    const Value x = b.batch("x", {DType::F32, {2}, {}}), y = b.batch("y", {DType::F32, {2}, {}});
    for (int i = 0; i < 2; ++i) {
      b.set_mark({text("b.", i), Phase::Forward, i, {"nn/small.cpp", 10 + i}});
      b.add(kTestAdd, {x, outside && i == 1 ? y : x});
    }
    return b.finish();
  };
  EXPECT_EQ(block_classes(build(false)).size(), 1u);
  EXPECT_EQ(block_classes(build(true)).size(), 2u);  // one value read twice, or two values
}

TEST(Blocks, AnEmptyGraphHasNone) { EXPECT_TRUE(block_classes(Graph()).empty()); }

}  // namespace
}  // namespace tessera
