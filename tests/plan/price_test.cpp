/// What a machine says that calls and actions take.

#include "tessera/plan/price.h"

#include <gtest/gtest.h>

#include "machine_line.h"
#include "plan/priced_calls.h"
#include "tessera/ops/matmul.h"
#include "tessera/plan/compile.h"
#include "tessera/plan/predict.h"

namespace tessera {
namespace {

using testing::kernel_call;
using testing::transfer_call;

const Machine kMachine =
    parse_machine("core=2GB/s+10us rack=1GB/s+100us compute=1GFLOP/s memory=4GB/s");

TEST(Price, OfCalls) {
  const Mesh mesh = parse_mesh("a=4@rack b=2");
  EXPECT_DOUBLE_EQ(price(kernel_call(3e6, 4e6), mesh, kMachine), 3e-3);
  EXPECT_DOUBLE_EQ(price(kernel_call(3e6, 40e6), mesh, kMachine), 10e-3);
  EXPECT_EQ(price(Call{}, mesh, kMachine), 0) << "a wait";
  Call copy;
  copy.copied_bytes = 1000;
  EXPECT_DOUBLE_EQ(price(copy, mesh, parse_machine("copy=2GB/s+5us")), 1000 / 2e9 + 5e-6);
  const Collective sum = Collective::all_reduce(DType::F32, {1000}, Monoid::Sum, "");
  EXPECT_DOUBLE_EQ(price(transfer_call(sum, {"b"}, 2), mesh, kMachine), 4000 / 2e9 + 20e-6);
  EXPECT_DOUBLE_EQ(price(transfer_call(sum, {"a"}, 4), mesh, kMachine), 6000 / 1e9 + 400e-6);
  EXPECT_DOUBLE_EQ(price(transfer_call(sum, {"a", "b"}, 8), mesh, kMachine), 7000 / 1e9 + 600e-6)
      << "over the slowest link";
  const Collective gather = Collective::all_gather(DType::F32, {1000}, 0, "");
  EXPECT_DOUBLE_EQ(price(transfer_call(gather, {"a"}, 4), mesh, kMachine), 3000 / 1e9 + 200e-6);
  const Collective send = Collective::send(DType::F32, {1000}, 1, "");
  EXPECT_EQ(price(transfer_call(send, {"pp"}, 2), mesh, kMachine), 0) << "beside the stages";
}

/// By the sizes of the product and the dtype of its operands.
TEST(Price, OfProducts) {
  Machine machine = kMachine;
  machine.device.bf16 = {4, 8, 2, 16};
  const TensorType a{DType::BF16, {3, 8, 16}, {}}, b{DType::BF16, {3, 16, 6}, {}},
      out{DType::F32, {3, 8, 6}, {}};
  Call call = kernel_call(3e6, 0);
  call.op = &kMatmul;
  call.types = CallTypes{{"b m k, b k n -> b m n", DType::F32}, {a, b}, {out}};
  EXPECT_DOUBLE_EQ(price(call, {}, machine), 3e6 / (4e9 * 0.5 * 0.75 * 0.5));
}

/// Of groups: by the floats of the rows, not by their ids, and by the rows that a group has in the
/// mean.
TEST(Price, OfProductsOfGroups) {
  Machine machine = kMachine;
  machine.device.bf16 = {4, 8, 2, 16};
  const TensorType ids{DType::I32, {16, 2}, {}}, rows{DType::BF16, {16, 2, 16}, {}},
      matrices{DType::BF16, {4, 16, 6}, {}}, results{DType::BF16, {16, 2, 6}, {}};
  Builder b;
  const Value product = grouped_matmul(b.batch("ids", ids), b.batch("rows", rows),
                                       b.batch("matrices", matrices));
  const NodeId id = product.id().node;
  b.output(Output::Kind::Metric, "product", product);
  const Graph graph = b.finish();
  Call call = kernel_call(3e6, 0);
  call.op = &kGroupedMatmul;
  call.types = CallTypes{graph.node(id).attrs, {ids, rows, matrices}, {results}};
  EXPECT_DOUBLE_EQ(price(call, {}, machine), 3e6 / (4e9 * 0.5 * 0.75 * 0.5));
}

/// Calls of the loop run in every micro-batch, in one, or in all but the first.
TEST(Price, OfAStep) {
  ProgramPlan program;
  program.microbatches = 4;
  program.regions.push_back({RegionKind::Begin, 0, {kernel_call(1e6, 0)}});
  program.regions.push_back({RegionKind::Forward, 0, {}});
  for (const When when : {When::Always, When::First, When::Later, When::Last}) {
    program.regions[1].calls.push_back(kernel_call(1e6, 0));
    program.regions[1].calls.back().when = when;
  }
  EXPECT_DOUBLE_EQ(step_seconds(program, {}, kMachine), 1e-3 * (1 + 4 + 1 + 3 + 1));
}

/// Layers of [8,width] rows per micro-batch, each a block; with `skip` the last reads the first.
Graph layers(int n, std::int64_t width, bool skip = false) {
  Builder b;
  const TensorType rows{DType::F32, {32, width}, {}};
  Value x = b.batch("x", rows), first;
  Value loss;
  for (int i = 0; i < n; ++i) {
    const Scope layer(b, text("layers.", i));
    const Value w =
        b.state(text("layers.", i, ".w"), {DType::F32, {width, width}, {}}, Role::Parameter, {});
    if (i == n - 1 && skip) x = x + first;
    x = matmul(x, w);
    if (i == 0) first = x;
    if (i == n - 1) loss = einsum("m k, m k -> ", x, x, {});
  }
  b.output(Output::Kind::Metric, "loss", loss);
  return b.finish();
}

std::vector<Plan> stages_of(Graph graph, const PipelineStrategy& pipeline, std::int64_t mb) {
  Strategy strategy = one_device(mb);
  strategy.pipeline = pipeline;
  return compile_stages({{"step", std::move(graph), strategy}}, *make_cpu_device({1, -1}));
}

TEST(Price, OfAPipeline) {
  const std::vector<Plan> plans = stages_of(layers(4, 64), {2, 1, "1f1b"}, 4);
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].rank, 1);
  EXPECT_EQ(plans[0].cut, plans[1].cut);
  EXPECT_EQ(plans[0].cut.size(), 4u);
  std::vector<const Plan*> stages;
  for (const Plan& plan : plans) stages.push_back(&plan);
  for (const Plan& plan : plans)
    EXPECT_EQ(plan.program("step").edges,
              (std::vector<EdgeBytes>{{{RegionKind::Forward, 0, 1}, 8 * 64 * 4}}));
  const Pipeline pipeline(make_schedule("1f1b", {2, 1, 4}));
  const PlayOptions prices = prices_of(stages, "step", pipeline, kMachine);
  const double product = 2 * 8 * 64 * 64 / 1e9;
  const double one = prices.cost({RegionKind::Forward, 0, 2});
  EXPECT_GT(one, 2 * product);  // and the rows of a micro-batch are taken from the batch
  EXPECT_LT(one, 2.1 * product);
  EXPECT_GT(prices.cost({RegionKind::Forward, 1, 2}), 2 * product);
  EXPECT_EQ(prices.cost({RegionKind::Backward, 0, 0}), 0) << "there is none";
  EXPECT_DOUBLE_EQ(prices.sends[0], 8 * 64 * 4 / 2e9 + 10e-6);
  EXPECT_TRUE(prices.ahead);
  EXPECT_EQ(prices.send_slots, 1);
}

/// A message past a chunk is an edge of the pipeline, on every stage's plan.
TEST(Price, EdgesSkipChunks) {
  for (const Plan& plan : stages_of(layers(3, 16, true), {3, 1, "gpipe"}, 2)) {
    std::vector<Edge> edges;
    for (const EdgeBytes& each : plan.program("step").edges) edges.push_back(each.edge);
    EXPECT_EQ(edges, (std::vector<Edge>{{RegionKind::Forward, 0, 1},
                                        {RegionKind::Forward, 0, 2},
                                        {RegionKind::Forward, 1, 2}}));
    EXPECT_EQ(skips_of(edges), (std::vector<std::pair<int, int>>{{0, 2}}));
  }
}

}  // namespace
}  // namespace tessera
