// From one op with a strategy to where everything lies; and the numbers of one device.
#include "tessera/shard/auto_parallel.h"
#include "tessera/passes/add_uses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "shard/one_device.h"
#include "shard/two_matmuls.h"
#include "tessera/base/error.h"
#include "tessera/ir/op_paths.h"
#include "tessera/models/family.h"
#include "tessera/ops/collective.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/plan/graph_dump.h"
#include "tessera/shard/shard.h"

namespace tessera {
namespace {

using test::expect_equals_one_device;
using test::gpt2_step;
using test::kVocabulary;
using test::placed_of;
using test::TwoMatmuls;

AutoParallel auto_parallel(std::vector<OpShard> shards, std::int64_t devices = 8) {
  AutoParallel out;
  out.mode = ParallelMode::AutoParallel;
  out.device_num = devices;
  out.shards = std::move(shards);
  return out;
}

AutoParallel full_batch(AutoParallel options) {
  options.dataset_strategy.kind = DatasetStrategy::Kind::FullBatch;
  return options;
}

/// "matmul ((2, 4), (4, 1)); relu ((2, 4))": forward ops in order, those of a block alone.
std::string strategies(const Graph& placed, const std::string& pattern = "*") {
  const std::vector<std::string> paths = op_paths(placed);
  std::string out;
  for (NodeId id = 0; id < placed.size(); ++id) {
    const Node& node = placed.node(id);
    const std::string& path = paths[static_cast<std::size_t>(id)];
    if (node.op->traits.leaf || reshards(*node.op) || path.empty() || !matches(pattern, path))
      continue;
    out += text(out.empty() ? "" : "; ", path, " ", to_text(in_strategy(placed, id)));
  }
  return out;
}

/// "w [d1,-]; w2 [d1,-]": parameters as they are read.
std::string parameters(const Graph& placed, const std::string& pattern = "*") {
  std::string out;
  for (const State& state : placed.states()) {
    if (state.role == Role::Parameter && matches(pattern, state.path))
      out += text(out.empty() ? "" : "; ", state.path, " ", state.use->sharding);
  }
  return out;
}

/// "[d0,-]+d1 -> [d0,d1]": what moves in the forward pass, sums that are finished included.
std::string forward_moves(const Graph& placed) {
  std::string out;
  for (const Node& node : placed.nodes()) {
    if (!reshards(*node.op) || node.phase != Phase::Forward) continue;
    out += text(out.empty() ? "" : "; ", placed.result(node.inputs[0]).placement->sharding, " -> ",
                node.results[0].placement->sharding);
  }
  return out;
}

// ---- the seed's network
// --------------------------------------------------------------------------------

TEST(AutoParallel, OneOpOfTheSeedsNetworkTellsTheRest) {
  TwoMatmuls net;
  shard(net.first, {{2, 4}, {4, 1}});
  const AutoParallel options = auto_parallel(shards_of(net.builder));
  const Graph step = net.step(), placed = placed_of(step, options);
  EXPECT_EQ(strategies(placed, "matmul"), "matmul ((2, 4), (4, 1))");
  EXPECT_EQ(strategies(placed, "relu"), "relu ((2, 4))");
  EXPECT_EQ(strategies(placed, "matmul2"), "matmul2 ((2, 4), (4, 1))");
  EXPECT_EQ(parameters(placed), "w [d1,-]; w2 [d1,-]");
  EXPECT_EQ(to_text(placed.mesh()), "d0=2 d1=4");
  // x comes cut along its rows by all; both sums are finished in the parts that their reader wants,
  // the second one where the labels lie.
  EXPECT_EQ(forward_moves(placed),
            "[d0.d1,-] -> [d0,d1]; [d0,-]+d1 -> [d0,d1]; [d0,-]+d1 -> [d0.d1,-]; []+d0+d1 -> []");
  expect_equals_one_device(step, options);
}

// ---- chains
// --------------------------------------------------------------------------------------------

/// Five ops in a row, of which one has a strategy.
struct Chain {
  Builder builder;
  Value start, first, middle, second, last;
  Value loss;

  Chain() {
    const Value x = builder.batch("x", {DType::F32, {16, 32}, {}});
    const Init normal{Init::Kind::Normal, 0.1};
    w = builder.state("w", {DType::F32, {32, 16}, {}}, Role::Parameter, normal);
    w2 = builder.state("w2", {DType::F32, {16, 8}, {}}, Role::Parameter, normal);
    start = relu(x);
    first = matmul(start, w);
    middle = tanh(first);
    second = matmul(middle, w2);
    last = sigmoid(second);
    loss = sum_all(last * last);
  }
  Graph step() {
    const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
    OptimizerConfig sgd;
    sgd.kind = OptimizerKind::Sgd;
    sgd.clip = sgd.weight_decay = 0;
    sgd.schedule = {.kind = ScheduleKind::Constant, .lr = 0.1};
    update({w, w2}, gradients(loss, {w, w2}), loss, samples, 16, sgd);
    builder.output(Output::Kind::Metric, "loss", loss);
    return builder.finish();
  }

 private:
  Value w, w2;
};

struct ChainCase {
  const char* name;
  OpShard shard;
  bool full_batch;
  const char *strategies, *parameters;
};
const ChainCase kChains[] = {
    {"only the last product",
     {"matmul2", {{2, 4}, {4, 1}}},
     true,
     "relu ((1, 1)); matmul ((2, 1), (1, 4)); tanh ((2, 4)); matmul2 ((2, 4), (4, 1)); "
     "sigmoid ((2, 4))",
     "w [-,d1]; w2 [d1,-]"},
    {"only the last product, rows of the batch on all ranks",
     {"matmul2", {{2, 4}, {4, 1}}},
     false,
     "relu ((8, 1)); matmul ((8, 1), (1, 1)); tanh ((8, 1)); matmul2 ((2, 4), (4, 1)); "
     "sigmoid ((2, 4))",
     "w [-,-]; w2 [d1,-]"},
    {"only the last op",
     {"sigmoid", {{2, 4}}},
     true,
     "relu ((1, 1)); matmul ((1, 1), (1, 1)); tanh ((1, 1)); matmul2 ((2, 1), (1, 4)); "
     "sigmoid ((2, 4))",
     "w [-,-]; w2 [-,d1]"},
    {"only the first op",
     {"relu", {{2, 4}}},
     true,
     "relu ((2, 4)); matmul ((2, 4), (4, 1)); tanh ((2, 4)); matmul2 ((2, 4), (4, 1)); "
     "sigmoid ((2, 4))",
     "w [d1,-]; w2 [d1,-]"},
    {"only the first product, columns",
     {"matmul", {{2, 1}, {1, 4}}},
     true,
     "relu ((2, 1)); matmul ((2, 1), (1, 4)); tanh ((2, 4)); matmul2 ((2, 4), (4, 1)); "
     "sigmoid ((2, 4))",
     "w [-,d1]; w2 [d1,-]"},
    {"only the op in the middle",
     {"tanh", {{2, 4}}},
     true,
     "relu ((1, 1)); matmul ((2, 1), (1, 4)); tanh ((2, 4)); matmul2 ((2, 4), (4, 1)); "
     "sigmoid ((2, 4))",
     "w [-,d1]; w2 [d1,-]"},
    {"data parallel is one strategy too",
     {"matmul", {{8, 1}, {1, 1}}},
     false,
     "relu ((8, 1)); matmul ((8, 1), (1, 1)); tanh ((8, 1)); matmul2 ((8, 1), (1, 1)); "
     "sigmoid ((8, 1))",
     "w [-,-]; w2 [-,-]"},
};

TEST(AutoParallel, OneOpOfAChainTellsTheRest) {
  for (const ChainCase& c : kChains) {
    SCOPED_TRACE(c.name);
    AutoParallel options = auto_parallel({c.shard});
    if (c.full_batch) options = full_batch(options);
    const Graph step = Chain().step(), placed = placed_of(step, options);
    const std::string all = strategies(placed);
    EXPECT_EQ(all.substr(0, all.find("; mul ")), c.strategies);  // up to the loss
    EXPECT_EQ(parameters(placed), c.parameters);
    expect_equals_one_device(step, options);
  }
}

// ---- a Transformer
// -------------------------------------------------------------------------------------

const std::pair<const char*, const char*> kBlock[] = {
    {"layers.0.attn.attention", "((2, 1, 4, 1, 1), (2, 1, 4, 1), (2, 1, 4, 1))"},  // heads
    {"layers.0.attn.proj.matmul", "((2, 1, 4), (1, 4))"},
    {"layers.0.mlp.gelu", "((2, 1, 4))"},  // hidden channels
    {"layers.0.mlp.down.matmul", "((2, 1, 4), (1, 4))"},
};

std::vector<OpShard> first_products() {
  return {{"layers.0.attn.qkv.matmul", {{2, 1, 1}, {4, 1}}},
          {"layers.0.mlp.up.matmul", {{2, 1, 1}, {4, 1}}}};
}

/// Megatron's block from its two first products: heads and hidden channels lie along the ranks that
/// cut these weights' rows, second weights are cut by columns, and what each second product sums is
/// finished once, in parts along the sequence.
TEST(AutoParallel, TwoProductsOfABlockTellTheRest) {
  const AutoParallel options = full_batch(auto_parallel(first_products()));
  const Graph step = gpt2_step(), placed = placed_of(step, options);
  for (const auto& [path, strategy] : kBlock)
    EXPECT_EQ(strategies(placed, path), text(path, " ", strategy));
  EXPECT_EQ(parameters(placed, "layers.0.*.*.weight"),
            "layers.0.attn.qkv.weight [d1,-]; layers.0.attn.proj.weight [-,d1]; "
            "layers.0.mlp.up.weight [d1,-]; layers.0.mlp.down.weight [-,d1]");
  EXPECT_EQ(parameters(placed, "layers.0.*.*.bias"),
            "layers.0.attn.qkv.bias [d1]; layers.0.attn.proj.bias [-]; layers.0.mlp.up.bias [d1]; "
            "layers.0.mlp.down.bias [-]");
  EXPECT_EQ(forward_moves(placed),
            "[-,-,-] -> [d0,-,-]; "       // into qkv: nothing moves
            "[d0,-,-]+d1 -> [d0,d1,-]; "  // reduce_scatter behind proj
            "[-,-,-] -> [d0,d1,-]; "      // what it is added to: nothing moves
            "[d0,d1,-] -> [d0,-,-]; "     // all_gather into up
            "[d0,-,-]+d1 -> [d0,d1,-]; "  // reduce_scatter behind down
            "[-,-] -> [d0,d1]; "          // labels: nothing moves
            "[]+d0+d1 -> []");            // the loss
  expect_equals_one_device(step, options, kVocabulary);
}

/// Where the batch comes cut along its rows by all ranks, it is gathered for the products.
TEST(AutoParallel, ABlockWhoseBatchIsCutByAll) {
  const AutoParallel options = auto_parallel(first_products());
  const Graph step = gpt2_step(), placed = placed_of(step, options);
  for (const auto& [path, strategy] : kBlock)
    EXPECT_EQ(strategies(placed, path), text(path, " ", strategy));
  expect_equals_one_device(step, options, kVocabulary);
}

/// Ranks that are left over come first in the matrix of a batch input, last in that of an op: three
/// axes, on which biases join sums that are not finished yet.
TEST(AutoParallel, ABlockWhoseBatchIsCutAlongAnotherAxis) {
  AutoParallel options = auto_parallel(first_products());
  options.dataset_strategy = {DatasetStrategy::Kind::Splits, {{2, 1}, {2, 1}}};
  const Graph step = gpt2_step(), placed = placed_of(step, options);
  EXPECT_EQ(to_text(placed.mesh()), "d0=2 d1=2 d2=2");
  EXPECT_EQ(parameters(placed, "*down.bias"), "layers.0.mlp.down.bias [-]");
  expect_equals_one_device(step, options, kVocabulary);
}

// ---- the order of axes
// ---------------------------------------------------------------------------------------

/// A result whose rows are cut by dp, mp and sp in this order, on a matrix that has sp before mp.
/// What nobody ordered, the batch input and in semi_auto_parallel the rows of other ops, follows.
TEST(AutoParallel, RowsThatNobodyOrderedFollowTheUsersOrder) {
  const DeviceLayout on({2, 2, 2, 2}, {"dp", "sp", "vp", "mp"});
  for (const ParallelMode mode : {ParallelMode::AutoParallel, ParallelMode::SemiAutoParallel}) {
    TwoMatmuls net;
    shard(net.first, {on("dp", {"mp", "sp"}), on({"mp", "sp"}, "vp")},
          {on({"dp", "mp", "sp"}, "vp")});
    AutoParallel options = auto_parallel(shards_of(net.builder), 16);
    options.mode = mode;
    const Graph step = net.step();
    const ParallelStep spread = parallelize(step, options);
    EXPECT_EQ(to_text(spread.strategy.pins[0].sharding), "[dp.vp.mp.sp.mb,-]")
        << "the batch input x";
    expect_equals_one_device(step, options);
  }
}

/// Two ops of the user that differ are named.
TEST(AutoParallel, TwoOrdersOfTheUserAreRefused) {
  const DeviceLayout on({2, 4}, {"dp", "mp"});
  TwoMatmuls net;
  shard(net.middle, {on({"mp", "dp"}, "None")});
  shard(net.out, {on({"dp", "mp"}, "None"), on("None", "None")});
  const AutoParallel options = auto_parallel(shards_of(net.builder));
  try {
    (void)parallelize(net.step(), options);
    FAIL() << "two orders";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "layouts order the axes dp, mp in two ways: op 'matmul2' cuts a dim by dp and then "
        "by mp, op 'relu' cuts a dim by mp and then by dp; use the same order in all layouts");
  }
}

// ---- what nobody reads, and predictions
// ---------------------------------------------------------------------------------------

TEST(AutoParallel, AStrategyOnAnOpThatNobodyReads) {
  TwoMatmuls net;
  (void)tanh(net.middle);
  try {
    (void)parallelize(net.step(), auto_parallel({{"tanh", {{2, 4}}}}));
    FAIL() << "an op that nobody reads";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "op 'tanh' has a strategy, but nothing that the step computes reads its result; "
                 "remove the strategy, or read the result");
  }
}

/// Where the batch comes cut, each rank keeps its rows of what is predicted; elsewhere all have it.
TEST(AutoParallel, PredictionsOfACutBatchStayCut) {
  Builder builder;
  const Value x = builder.batch("x", {DType::F32, {16, 32}, {}});
  const Value w = builder.state("w", {DType::F32, {32, 16}, {}}, Role::Parameter, {});
  builder.output(Output::Kind::Metric, "y", relu(matmul(x, w)));
  const Graph graph = builder.finish();
  const AutoParallel cut = auto_parallel({{"matmul", {{8, 1}, {1, 1}}}});
  const auto sharding = [](const Graph& placed) {
    return to_text(placed.result(placed.outputs()[0].value).placement->sharding);
  };
  const Graph placed = placed_of(graph, cut);
  EXPECT_EQ(sharding(placed), "[d0,-]");
  for (const Region& region : partition(placed).regions) {
    for (const Node& node : region.graph.nodes()) EXPECT_FALSE(node.op->traits.exchanges);
  }
  EXPECT_EQ(sharding(placed_of(graph, full_batch(cut))), "[-,-]");
  expect_equals_one_device(graph, cut);
}

// ---- states that are cut further
// -----------------------------------------------------------------------

/// enable_parallel_optimizer on 32 ranks. Theirs cuts dim 0 alone, and leaves a parameter whole
/// among its copies where that does not divide: (48, 64) in (8, 1) parts, as 48 / 32 is no integer.
/// Ours takes the first dim that is whole and divides, and only then cuts one further.
TEST(AutoParallel, OptimizerStatesAreCutAmongCopies) {
  const struct {
    const char* name;
    Shape w;
    Splits strategy;
    const char *use, *home;
  } kRows[] = {
      {"dim 0 is cut and does not divide: dim 1", {48, 64}, {{4, 8}, {8, 1}}, "[d1,-]", "[d1,d0]"},
      {"both are cut: the first one is cut further",
       {64, 16},
       {{4, 4}, {4, 2}},
       "[d1,d2]",
       "[d0.d1,d2]"},
      {"whole: dim 0", {64, 16}, {{32, 1}, {1, 1}}, "[-,-]", "[d0,-]"},
      {"no copies", {64, 16}, {{1, 32}, {32, 1}}, "[d0,-]", "[d0,-]"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.name);
    Builder builder;
    const Value x = builder.batch("x", {DType::F32, {32, row.w[0]}, {}});
    const Value w = builder.state("w", {DType::F32, row.w, {}}, Role::Parameter, {});
    const Value samples = builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
    const Value y = shard(matmul(x, w), row.strategy);
    const Value loss = sum_all(y * y);
    OptimizerConfig adam;
    adam.schedule.kind = ScheduleKind::Constant;
    update({w}, gradients(loss, {w}), loss, samples, 32, adam);
    AutoParallel options = auto_parallel(shards_of(builder), 32);
    options.enable_parallel_optimizer = true;
    const Graph placed = placed_of(builder.finish(), options);
    for (const State& state : placed.states()) {
      if (!starts_with(state.path, "w")) continue;  // counters
      if (state.role == Role::Parameter) {
        EXPECT_EQ(to_text(state.use->sharding), row.use);
      }
      EXPECT_EQ(to_text(state.home->sharding), row.home);
    }
  }
}

}  // namespace
}  // namespace tessera
