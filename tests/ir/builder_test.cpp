// The builder: what it marks, and what it refuses.
#include "tessera/ir/builder.h"

#include <gtest/gtest.h>

#include "ir/small_ops.h"

namespace tessera {
namespace {

const TensorType kMatrix{DType::F32, {2, 3}, {}}, kOther{DType::F32, {4}, {}};

template <typename Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Builder, ScopesNestAndEnd) {
  Builder b;
  const Value x = b.batch("x", kMatrix);
  {
    const Scope layer(b, "layers.3", {"nn/gpt.cpp", 1});
    const Scope mlp(b, "mlp", {"nn/gpt.cpp", 2});
    const Value w = b.state("up", kMatrix, Role::Parameter, {Init::Kind::Normal, 0.02});
    const Value y = b.add(kTestAdd, {x, w});
    EXPECT_EQ(b.node(y).block, "layers.3.mlp");
    EXPECT_EQ(b.node(y).where, (Where{"nn/gpt.cpp", 2}));
    EXPECT_EQ(b.so_far().states()[0].path, "layers.3.mlp.up");
    const Value z = b.add(kTestAdd, {y, y}, {}, {"ops/other.cpp", 5});
    EXPECT_EQ(b.node(z).where, (Where{"ops/other.cpp", 5}));  // a call that names its place wins
  }
  EXPECT_EQ(b.mark().block, "");
  EXPECT_EQ(b.node(b.add(kTestAdd, {x, x})).block, "");
}

TEST(Builder, BlocksMayShareStates) {
  Builder b;
  const auto layer = [&](int i, int shared, const TensorType& type, const char* name) {
    Scope scope(b, text("layers.", i));
    if (shared >= 0) scope.share_states(text("layers.", shared));
    const Scope mlp(b, "mlp");
    return b.state(name, type, Role::Parameter, {});
  };
  const Value first = layer(0, -1, kMatrix, "up");
  EXPECT_EQ(layer(1, 0, kMatrix, "up").id(), first.id());
  EXPECT_EQ(b.so_far().states().size(), 1u);
  EXPECT_NE(layer(2, -1, kMatrix, "up").id(), first.id()) << "the scope has ended";
  EXPECT_EQ(
      error_of([&] { layer(3, 0, kOther, "up"); }),
      "block 'layers.3.mlp' shares state 'layers.0.mlp.up', which is f32[2,3], as f32[4]; give "
      "both the same sizes");
  EXPECT_EQ(error_of([&] { layer(3, 0, kMatrix, "down"); }),
            "block 'layers.3.mlp' shares state 'layers.0.mlp.down', which does not exist; declare "
            "that block first, with the same names");
}

TEST(Builder, StagesAreMarkedByHand) {
  Builder b;
  const Value x = b.batch("x", kMatrix);
  const auto sum = [&] { return b.add(kTestAdd, {x, x}); };
  {
    Scope layer(b, "layers.3");
    layer.stage(2);
    EXPECT_EQ(b.node(sum()).stage, 2);
    {
      const Scope mlp(b, "mlp");
      EXPECT_EQ(b.node(sum()).stage, 2) << "of all that follows in the scope";
      EXPECT_EQ(b.node(sum().stage(1)).stage, 1);
      EXPECT_EQ(b.node(sum()).stage, 2) << "of one op";
    }
  }
  EXPECT_EQ(b.node(sum()).stage, -1);
  EXPECT_EQ(
      error_of([&] { x.stage(1); }),
      "stage 1 is set on a batch, which no op computes; set it on a value that its block computes");
  Scope head(b, "head");
  EXPECT_EQ(error_of([&] { head.stage(-1); }),
            "'head' is put on stage -1 of a pipeline; stages count from 0");
  EXPECT_EQ(error_of([&] { sum().stage(-2); }),
            "'head' is put on stage -2 of a pipeline; stages count from 0");
}

TEST(Builder, FinishHandsTheGraphOver) {
  Builder b;
  const Value x = b.batch("x", kMatrix);
  b.output(Output::Kind::Metric, "x", x);
  const Graph graph = b.finish();
  EXPECT_EQ(graph.size(), 1);
  EXPECT_EQ(graph.output(Output::Kind::Metric, "x"), x.id());
  EXPECT_FALSE(graph.output(Output::Kind::Slot, "x").valid());
  EXPECT_EQ(b.so_far().size(), 0);
}

TEST(Builder, WhereIsTheSameOnEveryMachine) {
  EXPECT_EQ(std::string(Where::here().file), "ir/builder_test.cpp");
  EXPECT_EQ(std::string(Where::here("/some/where/tessera/src/tessera/nn/gpt.cpp").file),
            "nn/gpt.cpp");
  // A user's project may lie in a folder of that name, and so may a clone.
  EXPECT_EQ(std::string(Where::here("/some/where/tessera/mine/net.cpp").file), "mine/net.cpp");
  EXPECT_EQ(std::string(Where::here("/some/where/tessera/net.cpp").file), "tessera/net.cpp");
  EXPECT_EQ(std::string(Where::here("gpt.cpp").file), "gpt.cpp");
  EXPECT_EQ(std::string(Where::here("nn/gpt.cpp").file), "nn/gpt.cpp");
  EXPECT_EQ(std::string(Where::here("/gpt.cpp").file), "gpt.cpp");
  EXPECT_EQ(Where::read("nn/gpt.cpp", 3), (Where{"nn/gpt.cpp", 3}));
  EXPECT_FALSE(Where::read("nn/gpt.cpp", 3) == (Where{"nn/gpt.cpp", 4}));
}

TEST(Builder, ErrorsSayWhatAndWhere) {
  Builder b;
  const Value x = b.batch("x", kMatrix), y = b.batch("y", kOther),
              w = b.state("w", kMatrix, Role::Parameter, {});
  EXPECT_EQ(error_of([&] { b.state("w", kMatrix, Role::Parameter, {}); }),
            "state 'w' is declared twice; give one of them another name");
  EXPECT_EQ(error_of([&] { b.next(w, y); }), "state 'w' is f32[2,3], its next value is f32[4]");
  const Scope scope(b, "layers.3.mlp", {"nn/gpt.cpp", 88});
  EXPECT_EQ(error_of([&] {
              b.add(kTestAdd, {x, y});
            }),
            "test_add: operands are f32[2,3] and f32[4]\n"
            "    node %3 = test_add(%0, %1), layers.3.mlp, written at nn/gpt.cpp:88");
}

TEST(Builder, BugsAreCalledSo) {
  Builder b, other;
  const Value x = b.batch("x", kMatrix), foreign = other.batch("x", kMatrix);
  EXPECT_THROW(b.add(kTestAdd, {x, foreign}), Broken);
  EXPECT_THROW(b.add(kTestAdd, {x, Value()}), Broken);
  EXPECT_THROW(b.add(kConstant, {}, {0.5}), Broken);
  EXPECT_THROW(b.add(kConstant, {}, {std::int64_t{1}, DType::F32}), Broken);
}

TEST(Builder, ParametersThatHaveACopy) {
  Builder b;
  for (const char* path : {"a.weight", "b.weight"})
    b.next(b.state(path, kMatrix, Role::Parameter, {}),
           b.state(text(path, ".m"), kMatrix, Role::Moment, {}));
  const Value copy = b.state("b.weight.bf16", kMatrix, Role::Copy, {});
  b.next(copy, copy);
  EXPECT_EQ(copied_parameters(b.so_far()), std::set<std::string>{"b.weight"});
}

TEST(Builder, CopiesKeepMarks) {
  const Graph from = layered_graph(1);
  Builder b;
  for (const Node& node : from.nodes()) b.copy(node, node.inputs);
  for (const State& state : from.states()) b.add_state(state);
  for (const Output& output : from.outputs())
    b.output(output.kind, output.name, Value(b, output.value));
  EXPECT_TRUE(b.finish() == from);
}

}  // namespace
}  // namespace tessera
