#include <gtest/gtest.h>

#include "tessera/ir/op_paths.h"
#include "tessera/nn/layers.h"
#include "tessera/ops/reduce.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/propagate.h"
#include "tessera/plan/graph_dump.h"
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/shard.h"

namespace tessera::test {

/// A layer is split by what goes in and comes out: its product has the columns of the result.
TEST(FunctionalShard, SplitsALayerByItsOperandsAndResult) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {16, 32}, {}});
  const auto up =
      shard([](Value in) { return linear(in, "up", 64); }, Splits{{2, 1}}, Splits{{2, 4}});
  builder.output(Output::Kind::Metric, "loss", sum_all(up(x)));
  AutoParallel options;
  options.mode = ParallelMode::AutoParallel;
  options.device_num = 8;
  options.shards = shards_of(builder);
  const ParallelStep step = parallelize(builder.finish(), options);
  const Graph placed = propagate(add_uses(step.graph), step.strategy);
  const std::vector<std::string> paths = op_paths(placed);
  const auto found = std::find(paths.begin(), paths.end(), "up.matmul");
  ASSERT_NE(found, paths.end());
  const auto id = static_cast<NodeId>(found - paths.begin());
  EXPECT_EQ(to_text(in_strategy(placed, id)), "((2, 1), (4, 1))");
  for (const State& state : placed.states())
    EXPECT_EQ(to_text(*state.use), state.path == "up.weight" ? "[d1,-]" : "[d1]") << state.path;
}

TEST(FunctionalShard, RefusesMoreStrategiesThanOperands) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {16, 32}, {}});
  const auto same = shard([](Value in) { return in; }, Splits{{2, 1}, {1, 2}});
  try {
    same(x);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("2 strategies for 1 operands"), std::string::npos);
  }
}

}  // namespace tessera::test
