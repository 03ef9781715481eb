// What a search counts for a move is what partition's plan of it takes.
#include "tessera/search/prices.h"

#include <gtest/gtest.h>

#include <random>

#include "machine_line.h"
#include "tessera/base/index.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/matmul.h"
#include "tessera/passes/redistribute.h"
#include "tessera/search/small_graph.h"

namespace tessera {
namespace {

/// Where each axis stands on a value, at random, so that all shards are of one size.
AxisPlacements random_stands(const tessera::Axes& axes, const Shape& shape, bool sums,
                             std::mt19937& random) {
  AxisPlacements out = axes.whole();
  std::vector<std::int64_t> cut(at(shape.ndim()), 1);
  for (int a = 0; a < axes.count(); ++a) {
    const int choice = static_cast<int>(random() % static_cast<unsigned>(shape.ndim() + 2)) - 2;
    if (choice == -2 && sums) out[at(a)] = kPartialSum;
    if (choice < 0) continue;
    if (shape[choice] % (cut[at(choice)] * axes[a].size) != 0) continue;
    cut[at(choice)] *= axes[a].size;
    out[at(a)] = static_cast<AxisPlacement>(choice);
  }
  return out;
}

TEST(Prices, AMoveCostsWhatItsPlanTakes) {
  constexpr const char* kMeshes[] = {"a=2 b=2 c=2", "a=4@host b=2 c=2",
                                     "a=3 b=2",     "a=2@rack b=2@host c=3",
                                     "a=2 b=4",     "a=2 b=2 c=2 d=2"};
  const Shape shapes[] = {{48, 16}, {24, 24, 12}, {5, 8, 16}, {96}, {8, 12, 6, 48}, {1, 48, 32}};
  Machine shared = parse_machine("core=300GB/s+3us host=25GB/s+8us rack=25GB/s+10us");
  shared.core.units = 4;
  shared.host.sharing = 4;
  std::mt19937 random(5);
  int moved = 0;
  for (const Machine& machine : {Machine{}, shared}) {
    for (const char* mesh : kMeshes) {
      Prices prices({parse_mesh(mesh)}, machine);
      Redistributor plans(parse_mesh(mesh), machine);
      const tessera::Axes& axes = prices.axes();
      for (int i = 0; i < 400; ++i) {
        const TensorType type{
            random() % 2 == 0 ? DType::F32 : DType::BF16, shapes[random() % std::size(shapes)], {}};
        const bool sums = random() % 2 == 0;
        const AxisPlacements from = random_stands(axes, type.shape, sums, random),
                             to =
                                 random_stands(axes, type.shape, sums && random() % 2 == 0, random);
        if (from == to) continue;
        const Sharding before = axes.write(from, type.ndim())->sharding,
                       after = axes.write(to, type.ndim())->sharding;
        SCOPED_TRACE(text(mesh, " ", type, " from ", before, " to ", after));
        const double planned = plans.plan(type.shape, type.dtype, before, after).seconds;
        EXPECT_EQ(prices.move(type, from, to, Traffic::Between), picoseconds(planned));
        moved += planned > 0;
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(moved, 1000);
}

TEST(Prices, PartsHaveTheirWeights) {
  Machine machine;
  machine.weights = {2, 3, 5, 7};
  Prices plain({parse_mesh("a=4")}, {}), weighted({parse_mesh("a=4")}, machine);
  const TensorType type{DType::F32, {64, 64}, {}};
  const AxisPlacements sum{kPartialSum}, whole{kWhole};
  const Cost once = plain.move(type, sum, whole, Traffic::Finish);
  EXPECT_GT(once, 0);
  EXPECT_EQ(weighted.move(type, sum, whole, Traffic::Finish), 3 * once);
  EXPECT_EQ(weighted.move(type, sum, whole, Traffic::Between), 5 * once);
  EXPECT_EQ(weighted.move(type, sum, whole, Traffic::Parameter), 7 * once);
  EXPECT_EQ(weighted.streamed(1000), 2 * plain.streamed(1000));
}

/// Of a causal attention whose batch and heads are shared out: the price of its products, as
/// plan/price gives it to the kernel.
TEST(Prices, AnAttentionIsPricedAsAProduct) {
  Machine machine;
  machine.device.f32 = {1000, 32, 64, 16, 0.25};
  machine.device.other_gigaflops_per_s = 1;
  Builder builder;
  const TensorType queries{DType::F32, {4, 128, 8, 2, 64}, {}},
      keys{DType::F32, {4, 128, 8, 64}, {}};
  const Value out = attention(builder.batch("q", queries), builder.batch("k", keys),
                              builder.batch("v", keys), Value(), Value(), {.causal = true})
                        .y;
  builder.output(Output::Kind::Metric, "out", out);
  const NodeId id = out.id().node;
  const Graph graph = builder.finish();
  const OpCall call = graph.call(id);
  const Factors rule = graph.factors(id);
  const Choices choices{static_cast<Choice>(rule.find("b")), static_cast<Choice>(rule.find("g"))};
  const AxisPlacements cut{0, 2}, statistics{0, 1};
  const Prices prices({parse_mesh("a=2 b=4")}, machine);
  const double flops = call.op().flops(call);
  EXPECT_EQ(work_of(prices, call, choices, flops, 0, {cut, cut, cut}, {cut, statistics}),
            picoseconds(machine.kernel_seconds(
                {flops / 8, 0, DType::F32, KernelWork::Product{128, 128, 64, true}})));
}

/// Of 32 rows among 4 groups, whose matrices are cut: by the floats of the rows, not by their ids.
TEST(Prices, AProductOfGroupsIsPricedByItsFloats) {
  Machine machine;
  machine.device.f32 = {1, 1, 1, 1};
  machine.device.bf16 = {1000, 8, 2, 16};
  Builder builder;
  const Value out = grouped_matmul(builder.batch("ids", {DType::I32, {16, 2}, {}}),
                                   builder.batch("rows", {DType::BF16, {16, 2, 16}, {}}),
                                   builder.batch("matrices", {DType::BF16, {4, 16, 6}, {}}));
  builder.output(Output::Kind::Metric, "out", out);
  const NodeId id = out.id().node;
  const Graph graph = builder.finish();
  const OpCall call = graph.call(id);
  const Prices prices({parse_mesh("a=2")}, machine);
  constexpr double kFlops = 1e9;
  const AxisPlacements whole{kWhole}, columns{2};
  const Choices choices{static_cast<Choice>(graph.factors(id).find("n"))};
  EXPECT_EQ(work_of(prices, call, choices, kFlops, 0, {whole, whole, columns}, {columns}),
            picoseconds(machine.kernel_seconds(
                {kFlops / 2, 0, DType::BF16, KernelWork::Product{8, 3, 16}})));
}

}  // namespace
}  // namespace tessera
