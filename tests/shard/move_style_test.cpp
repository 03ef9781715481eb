/// Collectives as MindSpore's compiler has them, beside ours: the same numbers, more bytes.

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

/// Bytes that one rank sends in a step, by the axes of groups.
std::map<std::string, std::int64_t> bytes_sent_with(MoveStyle moves) {
  ParallelStep step = quick_start();
  CompileOptions options;
  options.moves = moves;
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Plan plan = compile({{"train", std::move(step.graph), step.strategy}}, *device, options);
  std::map<std::string, std::int64_t> out;
  for (const auto& [axes, counts] : planned_counts(plan.programs[0])) out[axes] = bytes_of(counts);
  return out;
}

std::vector<std::string> forward_exchanges(MoveStyle moves) {
  const ParallelStep step = quick_start();
  const Program program = partition(propagate(add_uses(step.graph), step.strategy), {}, moves);
  std::vector<std::string> out;
  for (const Node& node : program.graph(RegionKind::Forward).nodes()) {
    if (node.op->traits.inserted) out.push_back(text(node.op->name, " ", node.type().shape));
  }
  return out;
}

}  // namespace

/// MindSpore's reduces [8,16] whole and cuts a quarter of it out: 768 bytes from each rank of four
/// where scattering takes 384; and it gathers the 32 columns of its rows, 768, where 192 are
/// exchanged.
TEST(MoveStyle, TheQuickStartSendsHalfOfWhatMindSporeSends) {
  EXPECT_EQ(forward_exchanges(MoveStyle::Least),
            (std::vector<std::string>{"all_to_all [8,8]", "reduce_scatter [8,4]",
                                      "reduce_scatter [2,16]", "all_reduce []"}));
  EXPECT_EQ(forward_exchanges(MoveStyle::DimByDim),
            (std::vector<std::string>{"all_gather [1,8,32]", "shard [1,8,8]", "all_reduce [8,16]",
                                      "shard [8,4]", "all_reduce [1,8,16]", "shard [1,2,16]",
                                      "all_reduce []"}));
  const auto ours = bytes_sent_with(MoveStyle::Least),
             theirs = bytes_sent_with(MoveStyle::DimByDim);
  // The gradient of a product gathers its cotangent and exchanges its operand once more; along d0
  // the gradients of both weights are summed, alike in both. As metrics they are made whole.
  const std::int64_t metrics = 3 * 4 * (8 * 16 + 4 * 16);
  EXPECT_EQ(ours.at("d1"), 192 + 384 + 384 + 384 + 384 + 192 + 6 + metrics);
  EXPECT_EQ(theirs.at("d1"), 768 + 768 + 768 + 384 + 384 + 768 + 6 + metrics);
  EXPECT_EQ(ours.at("d0"), theirs.at("d0"));
}

/// x comes transposed. Rows are cut in two and what is summed over in four, as where it does not:
/// the matrix is (2, 4, 1) all the same, and the sum lies where the next product wants it.
TEST(MoveStyle, ATransposedOperandSendsNoMore) {
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

TEST(MoveStyle, TheNumbersAreThoseOfOneDevice) {
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
  const auto run = [&](const Strategy& strategy, MoveStyle moves) {
    return interpret_program(partition(propagate(add_uses(step.graph), strategy), {}, moves),
                             inputs, how);
  };
  const auto want = run(one_device(1), MoveStyle::Least);
  for (const MoveStyle moves :
       {MoveStyle::Least, MoveStyle::DimByDim, MoveStyle::DimByDimAllToAll}) {
    const auto got = run(step.strategy, moves);
    for (const auto& [name, tensor] : want) {
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        ASSERT_NEAR(got.at(name).at(i), tensor.at(i), 1e-12) << name;
    }
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
