/// Strategies that a graph cannot carry out: every reason at once, with what is legal.

#include <gtest/gtest.h>

#include "tessera/models/parallel.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/propagate.h"
#include "tessera/plan/compile.h"
#include "train/tiny_step.h"

namespace tessera {
namespace {

std::string refusal(const Graph& graph, const Strategy& strategy) {
  try {
    propagate(add_uses(graph), strategy);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    return error.what();
  }
  return "";
}

TEST(RefusedStrategy, HeadsThatTheAxisDoesNotDivide) {
  const Graph graph = train_step(tiny("gpt2"), {}, 12, 8);  // 4 heads, 2 blocks
  const std::string message = refusal(graph, strategy_of({.devices = 3, .tensor = 3}));
  const std::string reason =
      " cannot be split by axis 'tp' of size 3: dim 2 of f32[12,8,48] is 4 x 3 x 4 (major first), "
      "and the axis must divide the major part; choose a size of 'tp' that divides 4";
  EXPECT_NE(message.find("reshape in layers.0.attn" + reason), message.npos) << message;
  EXPECT_NE(message.find("reshape in layers.1.attn" + reason), message.npos) << message;
}

TEST(RefusedStrategy, PinsThatFitNoShape) {
  const Graph graph = train_step(tiny("gpt2"), {}, 12, 8);
  Strategy strategy = strategy_of({.devices = 2});
  strategy.pins.push_back({"*.norm1.weight", parse_sharding("[dp,-]")});
  const std::string message = refusal(graph, strategy);
  for (const char* path : {"layers.0.norm1.weight", "layers.1.norm1.weight"}) {
    EXPECT_NE(message.find(text("state '", path,
                                "' of shape [16] is pinned to [dp,-], which has 2 dims; give it "
                                "1")),
              message.npos)
        << message;
  }
}

TEST(RefusedStrategy, PinsThatFitNoBatchInput) {
  const Graph graph = train_step(tiny("gpt2"), {}, 12, 8);
  const struct {
    const char* pin;
    const char* says;
  } cases[] = {
      {"[-,-,dp]",
       "batch input 'ids' of shape [12,8] is pinned to [-,-,dp], which has 3 dims; "
       "give it 2"},
      {"[-,-]+dp", "batch input 'ids' is pinned to [-,-]+dp, a sum to be finished"},
      {"[dp,dp]", "sharding [dp,dp] has axis 'dp' twice"},
  };
  for (const auto& c : cases) {
    Strategy strategy = strategy_of({.devices = 2});
    strategy.pins.push_back({"ids", parse_sharding(c.pin)});
    const std::string message = refusal(graph, strategy);
    EXPECT_NE(message.find(c.says), message.npos) << message;
  }
}

TEST(RefusedStrategy, AxesInAnotherOrderThanTheMeshs) {
  const Graph graph = train_step(tiny("gpt2"), {}, 12, 8);
  Strategy strategy = strategy_of({.devices = 4, .tensor = 2});
  strategy.pins.push_back({"*.mlp.up.weight", parse_sharding("[dp.tp,-]")});
  EXPECT_NE(refusal(graph, strategy).find("axis 'tp' is minor to one that is major on this mesh"),
            std::string::npos);
}

/// A name that was misspelt is no choice.
TEST(RefusedStrategy, PatternsThatMatchNothing) {
  const auto device = make_cpu_device({});
  const auto refused = [&](const Strategy& strategy) -> std::string {
    try {
      std::vector<ProgramSource> sources;
      sources.push_back({"train", train_step(tiny("gpt2"), {}, 12, 8), strategy});
      compile(std::move(sources), *device);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Usage);
      return error.what();
    }
    return "";
  };
  Strategy strategy = one_device(1);
  strategy.unsharded = {"embed.*"};
  strategy.recompute = {{"layers.*", Recompute::Full}};
  EXPECT_EQ(refused(strategy), "");
  strategy.unsharded.emplace_back("embed.tokn.weight");
  std::string message = refused(strategy);
  EXPECT_TRUE(message.starts_with("unsharded 'embed.tokn.weight' matches no parameter; nearest "))
      << message;
  EXPECT_NE(message.find("embed.token.weight"), message.npos) << message;
  strategy.unsharded.clear();
  strategy.pins = {{"*.mlp.up.weight", parse_sharding("[-,-]")},
                   {"ids", parse_sharding("[mb,-]")},
                   {"layers.0.residual", parse_sharding("[-,-,-]")},
                   {"*.no.such", parse_sharding("[-]"), /*optional=*/true}};
  EXPECT_EQ(refused(strategy), "");
  strategy.pins.push_back({"*.mlp.upp.weight", parse_sharding("[-,-]")});
  message = refused(strategy);
  EXPECT_TRUE(
      message.starts_with("pin '*.mlp.upp.weight' matches no state, batch input or named "
                          "value; nearest "))
      << message;
  EXPECT_NE(message.find("layers.0.mlp.up.weight"), message.npos) << message;
  strategy.pins.clear();
  strategy.recompute.push_back({"layer.*", Recompute::None});
  message = refused(strategy);
  EXPECT_TRUE(message.starts_with("recompute 'layer.*' matches no block; nearest ")) << message;
  EXPECT_NE(message.find("layers.0"), message.npos) << message;
  strategy.recompute.clear();
  strategy.buckets.pins = {{"layers.*", 1}, {"layers.0.mlp.upp.weight", 2}};
  message = refused(strategy);
  EXPECT_TRUE(message.starts_with("group 'layers.0.mlp.upp.weight' matches no parameter; nearest "))
      << message;
  strategy.buckets.pins.pop_back();
  strategy.pipeline.pins = {{"layers.0", 0}};
  EXPECT_EQ(refused(strategy), "");
  strategy.pipeline.pins.push_back({"layer.1", 0});
  message = refused(strategy);
  EXPECT_TRUE(message.starts_with("chunk 'layer.1' matches no block; nearest ")) << message;
}

}  // namespace
}  // namespace tessera
