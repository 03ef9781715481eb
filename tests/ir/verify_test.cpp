// What each form promises, broken one promise at a time.
#include "tessera/ir/verify.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/small_ops.h"

namespace tessera {
namespace {

const TensorType kType{DType::F32, {4, 6}, {}};

std::string broken_promise(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Broken& error) {
    return error.what();
  }
  return "";
}

void expect_says(const Graph& graph, const std::string& part) {
  const std::string said = broken_promise(graph);
  EXPECT_NE(said.find(part), std::string::npos)
      << "said: '" << said << "', wanted: '" << part << "'";
}

/// A node with the marks of a plain one.
Node node_of(const OpDef& op, Attrs attrs = {}, std::vector<Result> results = {{kType, {}, {}}}) {
  Node out;
  out.op = &op;
  out.attrs = std::move(attrs);
  out.results = std::move(results);
  return out;
}

/// x, x + x; then what `more` adds.
Graph with(const std::function<void(Builder&, Value)>& more) {
  Builder b;
  const Value x = b.batch("x", kType);
  const Scope scope(b, "layers.3", {"nn/small.cpp", 88});
  more(b, b.add(kTestAdd, {x, x}));
  return b.finish();
}

TEST(Verify, AModelIsAccepted) {
  EXPECT_EQ(broken_promise(layered_graph(3)), "");
  EXPECT_EQ(broken_promise(Graph()), "");
}

TEST(Verify, ErrorsNameTheNode) {
  Node bad = node_of(kTestAdd);
  bad.block = "layers.3";
  bad.where = {"nn/small.cpp", 88};
  const Graph graph = with([&](Builder& b, Value) { b.copy(bad, {{0, 0}, {2, 0}}); });
  EXPECT_EQ(broken_promise(graph),
            "internal error: operand %2 is not defined before it is used\n"
            "    node %2 = test_add(%0, %2), layers.3, written at nn/small.cpp:88; please report "
            "this with the command");
}

TEST(Verify, Nodes) {
  expect_says(with([](Builder& b, Value) {
                b.copy(node_of(kTestAdd), {{0, 0}, {1, 1}});
              }),
              "operand %1.1 is not defined");
  expect_says(with([](Builder& b, Value) {
                b.copy(node_of(kTestAdd), {{-1, 0}, {1, 0}});
              }),
              "is not defined");
  expect_says(with([](Builder& b, Value) { b.copy(node_of(kConstant, {0.5}), {}); }),
              "constant takes 2 attributes, not 1");
  expect_says(with([](Builder& b, Value) {
                b.copy(node_of(kConstant, {DType::F32, DType::F32}), {});
              }),
              "attribute 'value' has the wrong kind");
  expect_says(with([](Builder& b, Value) {
                b.copy(node_of(kConstant, {0.5, DType::F32}), {});
              }),
              "result 0 is f32[4,6], its type rule gives f32[]");
  expect_says(with([](Builder& b, Value) {
                b.copy(node_of(kTestPair), {{0, 0}});
              }),
              "has 1 results, its type rule gives 2");
  expect_says(with([](Builder& b, Value) {
                b.copy(node_of(kTestAdd), {{0, 0}});
              }),
              "the type rule refuses the node");
  expect_says(with([](Builder& b, Value v) {
                b.set_cotangent(v, {{9, 0}, true});
              }),
              "cotangent of a value that is not there");
  expect_says(with([](Builder& b, Value v) { b.set_like(v, 9); }),
              "like a node that is not there: %9");
  expect_says(with([](Builder& b, Value) { b.batch("x", kType); }),
              "batch input 'x' is given twice");
}

TEST(Verify, GraphsInAttributesAreGraphs) {
  Builder body;
  body.copy(node_of(kTestAdd), {{0, 0}, {0, 0}});
  const auto bad = std::make_shared<const Graph>(body.finish());
  expect_says(with([&](Builder& b, Value v) {
                b.add(kTestBody, {v}, {bad, std::int64_t{1}});
              }),
              "operand %0 is not defined");
  expect_says(with([&](Builder& b, Value v) {
                b.add(kTestBody, {v}, {std::shared_ptr<const Graph>(), std::int64_t{1}});
              }),
              "attribute 'body' holds no graph");
}

TEST(Verify, StatesAndOutputs) {
  expect_says(with([](Builder& b, Value v) {
                const Value w = b.state("w", kType, Role::Parameter, {});
                b.add_state({"layers.3.w", w.id(), Role::Parameter, {}, {}, {}});
                b.next(w, v);
              }),
              "state 'layers.3.w' is declared twice");
  expect_says(with([](Builder& b, Value v) {
                b.add_state({"w", v.id(), Role::Parameter, {}, {}, {}});
              }),
              "state 'w' is the value of another node");
  expect_says(with([](Builder& b, Value) {
                b.add_state({"w", {7, 0}, Role::Parameter, {}, {}, {}});
              }),
              "state 'w' has no value");
  expect_says(
      with([](Builder& b, Value) {
        b.copy(node_of(kState, {std::string("w"), DType::F32, std::vector<std::int64_t>{4, 6}}),
               {});
      }),
      "state 'w' is read but not declared");
  expect_says(with([](Builder& b, Value v) {
                const Value w = b.state("w", {DType::F32, {2}, {}}, Role::Parameter, {});
                b.output(Output::Kind::Next, "layers.3.w", v);
                (void)w;
              }),
              "state 'layers.3.w' is f32[2], its next value f32[4,6]");
  expect_says(with([](Builder& b, Value v) { b.output(Output::Kind::Next, "w", v); }),
              "which is no state");
  expect_says(with([](Builder& b, Value v) {
                b.output(Output::Kind::Metric, "loss", v);
                b.output(Output::Kind::Metric, "loss", v);
              }),
              "output 'loss' is given twice");
  expect_says(with([](Builder& b, Value) {
                b.output(Output::Kind::Metric, "loss", Value(b, {5, 0}));
              }),
              "output 'loss' is %5, which is not there");
}

/// One batch input of `result` in a graph of `form` on dp=4 tp=2.
Graph placed(Form form, Result result) {
  Builder b(form, parse_mesh("dp=4 tp=2"));
  b.slot("x", std::move(result));
  return b.finish();
}

TEST(Verify, GlobalGraphsHaveNoPlacements) {
  expect_says(placed(Form::Global, {kType, parse_placement("[-,-]"), {}}),
              "has a placement in a global graph");
  expect_says(placed(Form::Global, {kType, {}, {4, 6}}), "has a placement in a global graph");
  EXPECT_EQ(broken_promise(placed(Form::Global, {kType, {}, {}})), "");
}

struct PlacementCase {
  const char *name, *placement, *says;
};
const PlacementCase kPlacements[] = {
    {"whole", "[-,-]", ""},
    {"sharded and partial", "[dp,-]+tp", ""},
    {"two axes on one dim", "[dp.tp,-]@host", ""},
    {"too few dims", "[dp]", "placement [dp] of a f32[4,6]"},
    {"an unknown axis", "[-,pp]", "the mesh has no axis 'pp'"},
    {"an unknown partial axis", "[-,-]+mb", "the mesh has no axis 'mb'"},
    {"an axis twice", "[dp,dp]", "uses axis 'dp' twice"},
    {"sharded and partial on one axis", "[dp,-]+dp", "uses axis 'dp' twice"},
};

TEST(Verify, PlacedGraphs) {
  for (const PlacementCase& c : kPlacements) {
    SCOPED_TRACE(c.name);
    const Graph graph = placed(Form::Placed, {kType, parse_placement(c.placement), {}});
    if (*c.says == '\0') {
      EXPECT_EQ(broken_promise(graph), "");
    } else {
      expect_says(graph, c.says);
    }
  }
  expect_says(placed(Form::Placed, {kType, {}, {}}), "has no placement");
  expect_says(placed(Form::Placed, {kType, parse_placement("[-,-]"), {4, 6}}),
              "has a logical shape in a placed graph");
}

TEST(Verify, HomesOfStatesArePlacementsToo) {
  Builder b(Form::Placed, parse_mesh("dp=4"));
  Node node = node_of(kState, {std::string("w"), DType::F32, std::vector<std::int64_t>{4, 6}});
  node.results[0].placement = parse_placement("[-,-]");
  const ValueId value = b.copy(node, {})[0].id();
  b.add_state({"w", value, Role::Parameter, {}, parse_placement("[tp,-]"), {}});
  expect_says(b.finish(), "the mesh has no axis 'tp'");
}

TEST(Verify, LocalGraphsHoldShards) {
  const auto local = [](const Shape& shape, const char* placement, const Shape& logical) {
    return placed(Form::Local, {{DType::F32, shape, {}}, parse_placement(placement), logical});
  };
  EXPECT_EQ(broken_promise(local({1, 6}, "[dp,-]", {4, 6})), "");
  EXPECT_EQ(broken_promise(local({2, 6}, "[dp,-]+tp", {5, 6})), "");  // ceil: 2, 2, 1 and none
  expect_says(local({1, 6}, "[dp,-]", {5, 6}),
              "is f32[1,6], but a shard of [5,6] at [dp,-] has shape [2,6]");
  expect_says(local({4, 6}, "[-,-]", {4}), "logical shape [4] of a f32[4,6]");
  expect_says(placed(Form::Local, {kType, {}, {}}), "has no placement");
  // Inputs may still declare the whole shape.
  Builder b(Form::Local, parse_mesh("dp=4"));
  Node node = node_of(kBatch, {std::string("x"), DType::F32, std::vector<std::int64_t>{4, 6}});
  node.results[0] = {{DType::F32, {1, 6}, {}}, parse_placement("[dp,-]"), {4, 6}};
  b.copy(node, {});
  EXPECT_EQ(broken_promise(b.finish()), "");
}

}  // namespace
}  // namespace tessera
