/// The text of modules, of small graphs: no plugin is needed.

#include <gtest/gtest.h>

#include "hlo/model_runs.h"
#include "tessera/hlo/modules.h"
#include "tessera/hlo/op_call.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/parse.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/pack.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/table.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"

namespace tessera::test {

namespace {

using hlo::EmitOptions;

/// Lines of the main function of a module that holds the last node alone.
std::string lines_of(Builder& builder, const EmitOptions& options = {}) {
  const Graph graph = builder.finish();
  const std::string text = hlo::node_module(graph, graph.size() - 1, options).text;
  const std::size_t begin = text.find("@main"), first = text.find('\n', begin) + 1;
  return text.substr(first, text.find("\n}\n", first) - first + 1);
}

Value input(Builder& builder, Shape shape, DType dtype = DType::F32) {
  return builder.batch(text("x", builder.so_far().size()), {dtype, shape, {}});
}

/// loss = sum((x w)^2), in micro-batches; then w = w / 2 + loss.
Program small_program(const std::string& mesh) {
  Builder builder;
  const Value x = input(builder, {8, 4});
  const Value w = builder.state("w", {DType::F32, {4, 3}, {}}, Role::Parameter, {});
  const Value y = matmul(x, w);
  const Value loss = sum(y * y, {0, 1});
  builder.output(Output::Kind::Metric, "loss", loss);
  builder.next(w, w * 0.5 + loss);
  Strategy strategy;
  strategy.mesh = parse_mesh(mesh);
  strategy.batch = {{"dp", "mb"}};
  return partition(propagate(add_uses(builder.finish()), strategy));
}

}  // namespace

TEST(ModuleText, Elementwise) {
  Builder builder;
  input(builder, {2, 3}) + input(builder, {3});
  EXPECT_EQ(
      lines_of(builder),
      R"(  %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
)");
}

/// 16-bit floats are computed in f32, and rounded once.
TEST(ModuleText, SixteenBits) {
  Builder builder;
  exp(input(builder, {2}, DType::BF16));
  EXPECT_EQ(lines_of(builder), R"(  %0 = stablehlo.convert %arg0 : (tensor<2xbf16>) -> tensor<2xf32>
  %1 = stablehlo.exponential %0 : tensor<2xf32>
  %2 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xbf16>
  return %2 : tensor<2xbf16>
)");
}

/// A mask's number is in f32, whatever is masked.
TEST(ModuleText, SelectOfSixteenBitsAndF32) {
  Builder builder;
  const Value seen = input(builder, {2}, DType::Bool), x = input(builder, {2}, DType::BF16);
  select(seen, x, builder.constant(-1e9));
  EXPECT_NE(lines_of(builder).find(": tensor<2xi1>, tensor<2xbf16>"), std::string::npos);
}

TEST(ModuleText, Products) {
  Builder builder;
  einsum("b s k, n k -> b s n", input(builder, {2, 3, 5}), input(builder, {4, 5}));
  EXPECT_EQ(
      lines_of(builder),
      R"(  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x3x5xf32>, tensor<4x5xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
)");
}

TEST(ModuleText, Tf32IsSaidOfEachProduct) {
  Builder builder;
  matmul(input(builder, {2, 3}), input(builder, {3, 4}));
  EmitOptions options;
  options.tf32 = true;
  EXPECT_NE(lines_of(builder, options).find("lhs_precision_type = tf32"), std::string::npos);
}

/// As its expansion says.
TEST(ModuleText, CompositeOps) {
  Builder builder;
  softmax(input(builder, {2, 3}), 1);
  EmitOptions options;
  options.lines_of_call = 0;
  EXPECT_EQ(lines_of(builder, options), R"(  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.reshape %1 : (tensor<2xf32>) -> tensor<2x1xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %4 = stablehlo.subtract %arg0, %3 : tensor<2x3xf32>
  %5 = stablehlo.exponential %4 : tensor<2x3xf32>
  %6 = stablehlo.constant dense<0x00000000> : tensor<f32>
  %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %8 = stablehlo.reshape %7 : (tensor<2xf32>) -> tensor<2x1xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %10 = stablehlo.divide %5, %9 : tensor<2x3xf32>
  return %10 : tensor<2x3xf32>
)");
}

TEST(ModuleText, LongNodesAreFunctions) {
  Builder builder;
  softmax(input(builder, {2, 3}), 1);
  EXPECT_EQ(lines_of(builder),
            R"(  %0 = func.call @f0(%arg0) : (tensor<2x3xf32>) -> (tensor<2x3xf32>)
  return %0 : tensor<2x3xf32>
)");
}

/// A collective of many ranks lists them all: once for all nodes like it.
TEST(ModuleText, GroupsOfManyRanksAreWrittenOnce) {
  Builder builder(Form::Local, parse_mesh("dp=256"));
  Value x = input(builder, {2, 3});
  for (int i = 0; i < 3; ++i)
    x = builder.add(kAllReduce, {x}, {std::string("dp"), std::string("sum")}) * 0.5;
  builder.output(Output::Kind::Metric, "x", x);
  Program program;
  program.regions.push_back({RegionKind::Begin, 0, builder.finish()});
  program.regions.push_back(
      {RegionKind::Update, 0, Builder(Form::Local, parse_mesh("dp=256")).finish()});
  EmitOptions apart;
  apart.lines_of_call = 0;
  const auto lists = [&](const EmitOptions& options) {
    const std::string text = hlo::whole_module("m", program, options).text;
    int out = 0;
    for (std::size_t at = 0; (at = text.find("replica_groups", at)) != std::string::npos; ++at)
      ++out;
    return out;
  };
  EXPECT_EQ(lists(apart), 3);
  EXPECT_EQ(lists({}), 1);
}

/// What differs among ranks is looked up; collectives have groups and no channel.
TEST(ModuleText, Programs) {
  const hlo::Module module = hlo::whole_module("train", small_program("dp=2 mb=2@time"));
  std::vector<std::string> arguments, results;
  for (const hlo::Port& port : module.arguments) arguments.push_back(to_text(port));
  for (const hlo::Port& port : module.results) results.push_back(to_text(port));
  EXPECT_EQ(join(arguments), "batch x0, state w");
  EXPECT_EQ(join(results), "state w, metric loss");
  EXPECT_EQ(module.replicas(), 2);
  EXPECT_EQ(module.donations, (std::vector<hlo::Module::Donation>{{1, 0}}));
  EXPECT_EQ(
      module.text,
      R"(module @train attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
func.func public @main(%arg0: tensor<4x4xf32>, %arg1: tensor<4x3xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4x3xf32>, tensor<f32>) {
  %0 = stablehlo.constant dense<0> : tensor<i64>
  %1 = stablehlo.constant dense<0x00000000> : tensor<f32>
  %2:2 = stablehlo.while(%3 = %0, %4 = %1) : tensor<i64>, tensor<f32>
  cond {
  %5 = stablehlo.constant dense<2> : tensor<i64>
  %6 = stablehlo.compare LT, %3, %5, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
  stablehlo.return %6 : tensor<i1>
  } do {
  %7 = stablehlo.constant dense<[0, 2]> : tensor<2xi64>
  %8 = stablehlo.dynamic_slice %7, %3, sizes = [1] : (tensor<2xi64>, tensor<i64>) -> tensor<1xi64>
  %9 = stablehlo.reshape %8 : (tensor<1xi64>) -> tensor<i64>
  %10 = stablehlo.dynamic_slice %arg0, %9, %0, sizes = [2, 4] : (tensor<4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x4xf32>
  %11 = stablehlo.dot_general %10, %arg1, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %12 = stablehlo.multiply %11, %11 : tensor<2x3xf32>
  %13 = stablehlo.reduce(%12 init: %1) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  %14 = stablehlo.constant dense<1> : tensor<i64>
  %15 = stablehlo.add %3, %14 : tensor<i64>
  %16 = stablehlo.add %4, %13 : tensor<f32>
  stablehlo.return %15, %16 : tensor<i64>, tensor<f32>
  }
  %17 = stablehlo.constant dense<0x3F000000> : tensor<f32>
  %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %19 = stablehlo.multiply %arg1, %18 : tensor<4x3xf32>
  %20 = "stablehlo.all_reduce"(%2#1) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %a, %b : tensor<f32> stablehlo.return %c : tensor<f32> }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<f32>) -> tensor<f32>
  %21 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
  %22 = stablehlo.add %19, %21 : tensor<4x3xf32>
  return %22, %20 : tensor<4x3xf32>, tensor<f32>
}
}
)");
}

/// A parameter that ZeRO-3 gathers for forward and for backward is not kept in between: each gather
/// of backward reads what compilers take for another value.
TEST(ModuleText, BackwardGathersAgain) {
  const ModelRun zero3 = {"gpt2", "--devices 2 --zero-stage 3"};
  constexpr std::string_view kGather = "\"stablehlo.all_gather\"(";
  int gathers = 0, apart = 0;
  for (const Program& program : zero3.programs()) {
    const std::string text = hlo::whole_module("some", program).text;
    for (std::size_t at = text.find(kGather); at != std::string::npos;
         at = text.find(kGather, at)) {
      at += kGather.size();
      const std::string operand = text.substr(at, text.find(')', at) - at);
      ++gathers;
      if (text.find(operand + " = stablehlo.optimization_barrier") != std::string::npos) ++apart;
    }
  }
  EXPECT_GT(apart, 8);
  EXPECT_GT(gathers, apart);
}

/// What backward recomputes waits for the gradient that comes down to it: a compiler that recomputed
/// at once would keep it. Barriers whose last result nobody reads are narrowed by XLA.
TEST(ModuleText, BackwardRecomputesBehindTheGradient) {
  const ModelRun recomputed = {"gpt2", "--layers 3 --recompute-granularity full"};
  constexpr std::string_view kBarrier = " = stablehlo.optimization_barrier ";
  int waiting = 0;
  for (const Program& program : recomputed.programs()) {
    const std::string text = hlo::whole_module("some", program).text;
    for (std::size_t at = text.find(kBarrier); at != std::string::npos;
         at = text.find(kBarrier, at + 1)) {
      const std::size_t begin = text.rfind('%', at);
      const std::string head = text.substr(begin, at - begin);  // "%5:2"
      const std::size_t colon = head.find(':');
      if (colon == std::string::npos) continue;
      const int results = std::stoi(head.substr(colon + 1));
      const std::string last = head.substr(0, colon) + "#" + std::to_string(results - 1);
      EXPECT_NE(text.find(last, at), std::string::npos) << last;
      ++waiting;
    }
  }
  EXPECT_GE(waiting, 6) << "norms and products of two blocks below the last";
}

/// Every op has an entry but the leaves, those that no local graph holds, and pack.
TEST(ModuleText, EveryOpHasAForm) {
  std::vector<std::string> missing;
  for (const OpDef* op : all_ops()) {
    if (hlo::find_emission(*op) == nullptr && !op->traits.leaf) missing.emplace_back(op->name);
    const hlo::Emission* entry = hlo::find_emission(*op);
    const bool by_hand = entry != nullptr && entry->source == hlo::Source::Formula;
    EXPECT_FALSE(by_hand && op->expand != nullptr) << op->name << " has an expansion: write that";
  }
  EXPECT_EQ(join(missing), "pack, reshard, use");
}

TEST(ModuleText, ErrorsNameOpTypesAndBlock) {
  Builder builder;
  const Scope scope(builder, "layers.0");
  builder.add(kPack, {input(builder, {2, 3})}, {std::string("tag"), std::int64_t{64}});
  const Graph graph = builder.finish();
  try {
    hlo::node_module(graph, graph.size() - 1);
    FAIL() << "a packed value has no form";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage);
    const std::string said = error.what();
    for (const char* part : {"op 'pack'", "f32[2,3]", "layers.0"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

}  // namespace tessera::test
