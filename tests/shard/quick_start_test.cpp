/// The quick start on eight ranks: its exchanges, its bytes, its numbers and its dumps.

#include <gtest/gtest.h>

#include "shard/two_matmuls.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/plan/compile.h"
#include "tessera/plan/graph_dump.h"
#include "tessera/plan/traffic.h"
#include "tessera/shard/auto_parallel.h"
#include "tessera/shard/shard.h"

namespace tessera::test {
namespace {

ParallelStep quick_start() {
  TwoMatmuls net;
  shard(net.first, {{2, 4}, {4, 1}});
  AutoParallel options;
  options.mode = ParallelMode::AutoParallel;
  options.device_num = 8;
  options.shards = shards_of(net.builder);
  return parallelize(net.step(), options);
}

}  // namespace

/// The columns of x that a rank lacks are exchanged, and sums are scattered to where they are read.
TEST(QuickStart, SendsTheLeast) {
  ParallelStep step = quick_start();
  const Program program = partition(propagate(add_uses(step.graph), step.strategy));
  std::vector<std::string> exchanges;
  for (const Node& node : program.graph(RegionKind::Forward).nodes()) {
    if (node.op->traits.inserted) exchanges.push_back(text(node.op->name, " ", node.type().shape));
  }
  EXPECT_EQ(exchanges, (std::vector<std::string>{"all_to_all [8,8]", "reduce_scatter [8,4]",
                                                 "reduce_scatter [2,16]", "all_reduce []"}));
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan plan = compile({{"train", std::move(step.graph), step.strategy}}, *device, {});
  // The gradient of a product gathers its cotangent and exchanges its operand once more. As metrics
  // both gradients are made whole.
  const std::int64_t metrics = 3 * 4 * (8 * 16 + 4 * 16);
  EXPECT_EQ(bytes_of(planned_counts(plan.programs[0]).at("d1")),
            192 + 384 + 384 + 384 + 384 + 192 + 6 + metrics);
}

/// x comes transposed. Rows are cut in two and what is summed over in four, as where it does not:
/// the matrix is (2, 4, 1) all the same, and the sum lies where the next product wants it.
TEST(QuickStart, ATransposedOperandSendsNoMore) {
  const auto bytes = [](bool transposed) {
    Builder builder;
    const Value x =
        builder.batch("x", {DType::F32, transposed ? Shape{32, 16} : Shape{16, 32}, {}});
    const Value w = builder.state("w", {DType::F32, {32, 16}, {}}, Role::Parameter, {});
    const Value y = matmul(x, w, {.trans_a = transposed});
    shard(y, transposed ? Splits{{4, 2}, {4, 1}} : Splits{{2, 4}, {4, 1}});
    const Value z = relu(y);
    shard(z, Splits{{2, 1}});
    builder.output(Output::Kind::Metric, "loss", sum_all(z));
    AutoParallel options;
    options.mode = ParallelMode::AutoParallel;
    options.device_num = 8;
    options.dataset_strategy.kind = DatasetStrategy::Kind::FullBatch;
    options.shards = shards_of(builder);
    ParallelStep step = parallelize(builder.finish(), options);
    const std::unique_ptr<Device> device = make_cpu_device({1, -1});
    const Plan plan = compile({{"train", std::move(step.graph), step.strategy}}, *device, {});
    std::int64_t out = 0;
    for (const auto& [axes, counts] : planned_counts(plan.programs[0])) out += bytes_of(counts);
    return out;
  };
  EXPECT_EQ(bytes(true), bytes(false));
}

/// A rank that the mesh does not have is refused.
TEST(Compile, RanksOfTheMeshAlone) {
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  for (const int rank : {-1, 8, 4096}) {
    ParallelStep step = quick_start();
    CompileOptions options;
    options.rank = rank;
    try {
      (void)compile({{"train", std::move(step.graph), step.strategy}}, *device, options);
      ADD_FAILURE() << "rank " << rank << " of 8";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   text("rank ", rank, " on mesh 'd0=2 d1=4', whose ", "ranks are 0 to 7").c_str());
    }
  }
}

TEST(QuickStart, TheNumbersAreThoseOfOneDevice) {
  const ParallelStep step = quick_start();
  Bindings inputs;
  const auto numbers = [](const TensorType& type, double seed) {
    HostTensor out(type.dtype == DType::F32 ? DType::F64 : type.dtype, type.shape);
    for (std::int64_t i = 0; i < out.numel() && is_float(out.dtype()); ++i)
      out.set(i, 0.1 * static_cast<double>((i * 7 + static_cast<std::int64_t>(seed)) % 13) - 0.5);
    return out;
  };
  double seed = 0;
  for (const Node& node : step.graph.nodes()) {
    if (node.op == &kBatch)
      inputs.batch[std::get<std::string>(node.attrs[0])] = numbers(node.type(), ++seed);
    if (node.op == &kState)
      inputs.states[std::get<std::string>(node.attrs[0])] = numbers(node.type(), ++seed);
  }
  Interpretation how;
  how.f64 = true;
  const auto run = [&](const Strategy& strategy) {
    return interpret_program(partition(propagate(add_uses(step.graph), strategy)), inputs, how);
  };
  const auto want = run(one_device(1)), got = run(step.strategy);
  for (const auto& [name, tensor] : want) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      ASSERT_NEAR(got.at(name).at(i), tensor.at(i), 1e-12) << name;
  }
}

TEST(GraphDump, ShowsStrategiesShapesAndGroups) {
  const ParallelStep step = quick_start();
  const Graph placed = propagate(add_uses(step.graph), step.strategy);
  const std::string strategies = strategies_text(placed);
  for (const char* line :
       {"# mesh: d0=2 d1=4", "(matmul) = matmul(", "{in_strategy: ((2, 4), (4, 1))}",
        "{in_strategy: ((2, 4))}", "-> (<Tensor[Float32], (16, 16)>)", "# scope: (forward)",
        "# In file shard/two_matmuls.h("})
    EXPECT_NE(strategies.find(line), std::string::npos) << line << "\n" << strategies;
  const Program program = partition(placed);
  std::vector<PassGraph> graphs;
  for (const Region& region : program.regions)
    graphs.push_back({program.name_of(region), &region.graph});
  const std::string first = execution_text(graphs, 0), fifth = execution_text(graphs, 4);
  EXPECT_NE(first.find("{group_ranks: 0-1-2-3, rank_list: (0, 1, 2, 3), bytes: 384}"),
            std::string::npos);
  EXPECT_NE(first.find("{group_ranks: 0-4, "), std::string::npos);
  EXPECT_NE(fifth.find("{group_ranks: 4-5-6-7, "), std::string::npos);
  EXPECT_NE(first.find(": (<Tensor[Float32], (8, 4)>, <Tensor[Float32], (4, 16)>)"),
            std::string::npos);
}

}  // namespace tessera::test
