/// Strategies as text.

#include "tessera/ir/strategy_text.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

Strategy full_strategy() {
  Strategy out;
  out.mesh = parse_mesh("dp=2 tp=2@host mb=4@time");
  out.batch = {{"dp", "mb"}, {}};
  out.major = {"tp", "dp", "mb"};
  out.pins = {{"*.qkv.weight", parse_sharding("[tp,-]")},
              {"gradient of a name", parse_sharding("[-]+dp")},
              {"*.residual", parse_sharding("[dp,-]"), /*optional=*/true}};
  out.ops = {{"layers.0.mm", {parse_sharding("[dp,-]"), parse_sharding("[-,tp]")}},
             {"layers.1.mm", {parse_sharding("[dp,-]")}, {parse_sharding("[dp,tp]+mb:max")}}};
  out.shard_moments = {"dp"};
  out.shard_gradients = {"dp", "tp"};
  out.shard_parameters = {"dp"};
  out.shard_threshold = 5'000'000'000;
  out.unsharded = {"embed.*", "a name"};
  out.cut_outputs = {"gradient layers.0.weight", "rows"};
  out.pipeline = {2, 2, "zb-v", {{"layers.0", 0}, {"layers.*", 1}}};
  out.buckets = {25 << 20, {{"layers.*", 2}, {"a name.weight", 0}}};
  return out;
}

TEST(StrategyText, IsReadAsItWasWritten) {
  for (const Strategy& strategy : {full_strategy(), Strategy{}, one_device(3)}) {
    const std::string text = to_text(strategy);
    EXPECT_TRUE(parse_strategy(text) == strategy) << text;
    EXPECT_EQ(to_text(parse_strategy(text)), text);
  }
}

/// Every part of a strategy has a place in the text.
TEST(StrategyText, TellsAllApart) {
  const std::string whole = to_text(full_strategy());
  const std::vector<std::string> lines = split(whole, '\n');
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    std::string without;
    for (std::size_t j = 0; j + 1 < lines.size(); ++j) {
      if (j != i) without += lines[j] + "\n";
    }
    EXPECT_FALSE(parse_strategy(without) == full_strategy()) << lines[i];
  }
}

TEST(StrategyText, CommentsAndEmptyLinesAreSkipped) {
  EXPECT_TRUE(parse_strategy("# of a test\n\nmesh dp=2\n") == parse_strategy("mesh dp=2"));
}

TEST(StrategyText, SaysWhichLineIsWrong) {
  for (const char* line :
       {"mash dp=2", "pin a", "op a", "op a outs [dp]", "pipeline 1f1b", "pipeline 1f1b 2 1",
        "pipeline 1f1b stages=two chunks=1", "chunk layers.0", "chunk layers.0 x", "bucket",
        "bucket -1", "group layers.0", "threshold x", "threshold -1", "threshold", "unsharded "}) {
    try {
      parse_strategy(text("mesh dp=2\n", line));
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      EXPECT_NE(std::string(error.what()).find(text("'", line, "'")), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
