/// First values have the same bits however the states are cut, on ranks that are threads.

#include <gtest/gtest.h>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/interpret.h"
#include "train/staged_run.h"

namespace tessera {
namespace {

/// A state of each kind, of sizes that two and four ranks cut unevenly.
Graph drawn_states() {
  Builder builder;
  for (const Init::Kind kind : {Init::Kind::Constant, Init::Kind::Normal, Init::Kind::Uniform,
                                Init::Kind::TruncatedNormal}) {
    const Value state = builder.state(text("w", static_cast<int>(kind)), {DType::F32, {37, 6}, {}},
                                      Role::Parameter, {kind, 0.5});
    builder.next(state, state * 0.5);
  }
  return builder.finish();
}

Outcome first_values(std::int64_t ranks, int dim) {
  const Graph graph = drawn_states();
  Strategy strategy;
  if (ranks > 1) strategy.mesh = Mesh({{"tp", ranks, Level::Core}});
  strategy.pins = {{"w*", Sharding::replicated(2).with("tp", dim)}};
  StagedRun run(graph, strategy);
  run.steps = 0;
  return run();
}

TEST(FirstValues, HaveTheSameBitsOnEveryMesh) {
  const Outcome one = first_values(1, 0);
  ASSERT_EQ(one.states.size(), 4U);
  for (const std::int64_t ranks : {2, 4}) {
    for (const int dim : {0, 1}) {
      SCOPED_TRACE(text(ranks, " ranks, cut along ", dim));
      expect_same_bits(one, first_values(ranks, dim));
    }
  }
  const Graph graph = initialise(drawn_states());
  Bindings before;  // anything
  for (const State& state : graph.states())
    before.states.emplace(state.path, HostTensor(graph.type(state.value)));
  const std::vector<HostTensor> interpreted = interpret(graph, before);
  for (std::size_t i = 0; i < interpreted.size(); ++i) {
    EXPECT_TRUE(
        std::ranges::equal(interpreted[i].bytes(), one.states.at(graph.outputs()[i].name).bytes()))
        << graph.outputs()[i].name << " on a device";
  }
}

}  // namespace
}  // namespace tessera
