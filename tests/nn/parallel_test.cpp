/// The well-known ways to spread a model, as strategies; what is refused, with what is legal.

#include "tessera/nn/parallel.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

ModelConfig model() {
  ModelConfig out;
  out.heads = 8;
  out.kv_heads = 4;
  out.context = 16;
  return out;
}

TEST(Parallel, ProblemsSayWhatIsLegal) {
  struct Case {
    ParallelConfig config;
    std::vector<std::string> problems;
  };
  const Case cases[] = {
      {{.devices = 8, .tensor = 4, .context = 2}, {}},
      {{.devices = 0}, {"devices is 0; it must be at least 1"}},
      {{.devices = 2, .tensor = 4},
       {"devices 2 is not a multiple of tensor-model-parallel-size 4 x context-parallel-size 1; "
        "nearest: devices 4"}},
      {{.devices = 7, .tensor = 3},
       {"devices 7 is not a multiple of tensor-model-parallel-size 3 x context-parallel-size 1; "
        "nearest: devices 6 or 9",
        "tensor-model-parallel-size 3 does not divide the model's 8 heads; it can be 1, 2, 4, 8"}},
      {{.devices = 8, .tensor = 8},
       {"tensor-model-parallel-size 8 does not divide the model's 4 key-value heads; it can be 1, "
        "2, 4"}},
      {{.devices = 32, .context = 32},
       {"context-parallel-size 32 is above the context of 16 tokens; lower it"}},
  };
  for (const Case& c : cases) EXPECT_EQ(problems(c.config, model()), c.problems);
}

TEST(Parallel, StrategiesArePins) {
  const Strategy s = strategy_of({.devices = 8,
                                  .tensor = 2,
                                  .context = 2,
                                  .sequence = true,
                                  .shard_optimizer = true,
                                  .micro_batches = 3});
  EXPECT_EQ(to_text(s.mesh), "dp=2 cp=2 tp=2 mb=3@time");
  const auto pinned = [&](std::string_view path) {
    std::string out = "none";
    for (const Pin& pin : s.pins) {
      if (matches(pin.values, path)) out = to_text(pin.sharding);
    }
    return out;
  };
  EXPECT_EQ(pinned("layers.3.attn.qkv.weight"), "[tp,-]");
  EXPECT_EQ(pinned("layers.3.attn.proj.weight"), "[-,tp]");
  EXPECT_EQ(pinned("layers.3.attn.proj.bias"), "none");
  EXPECT_EQ(pinned("layers.11.mlp.down.weight"), "[-,tp]");
  EXPECT_EQ(pinned("embed.token.weight"), "[tp,-]");
  EXPECT_EQ(pinned("layers.0.residual"), "[dp.mb,cp.tp,-]");
  EXPECT_EQ(s.shard_moments, std::vector<std::string>{"dp"});
  EXPECT_TRUE(s.shard_gradients.empty());
}

TEST(Strategy, PatternsMatch) {
  struct Case {
    const char *pattern, *path;
    bool matches;
  };
  const Case cases[] = {
      {"", "", true},           {"*", "", true},          {"a", "a", true},
      {"a", "ab", false},       {"*.b", "x.y.b", true},   {"*.b", "x.y.b.c", false},
      {"a*c*e", "abcde", true}, {"a*c*e", "abcd", false}, {"layers.*.up", "layers.12.mlp.up", true},
      {"**", "anything", true}, {"a*a", "a", false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(matches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
}

TEST(Parallel, AxesKnowWhichLinkTheyCross) {
  ParallelConfig c{.devices = 16, .tensor = 2, .context = 2};
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4 cp=2 tp=2");
  c.ranks_per_host = 4;
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host cp=2 tp=2");
  c.ranks_per_host = 2;
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host cp=2@host tp=2");
  c.ranks_per_host = 1;
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host cp=2@host tp=2@host");
  c.ranks_per_host = 16;
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4 cp=2 tp=2");
}

}  // namespace
}  // namespace tessera
