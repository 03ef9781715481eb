/// Graphs that are written through functions of C: every op has a name there, and what is wrong is
/// said in words.

#include "tessera/c_api/graph_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/ops/table.h"

namespace tessera {
namespace {

std::set<std::string_view> names_of_calls() {
  std::set<std::string_view> out;
  for (const auto& calls : {structure_calls(), op_calls(), layer_calls()}) {
    for (const GraphCall& call : calls) {
      EXPECT_TRUE(out.insert(call.name).second) << call.name << " is there twice";
    }
  }
  return out;
}

TEST(GraphCalls, EveryOpOfTheTableThatModelsAreWrittenWithCanBeCalled) {
  // What others add to graphs.
  const std::set<std::string_view> others = {
      // inputs of regions and stages, placements, collectives: passes
      "slot", "receive", "pack", "reshard", "use", "shard", "mark_partial", "copy", "all_reduce",
      "all_gather", "reduce_scatter", "dispatch", "combine", "all_to_all", "permute",
      "clear_padding", "bucket", "fused", "merge_attention",
      // gradients
      "silu_grad", "gelu_grad", "dynamic_pad", "layer_norm_grad", "rms_norm_grad",
      "cross_entropy_grad", "attention_grad", "grouped_outer",
      // updates
      "adam", "lamb_direction", "sgd"};
  std::set<std::string_view> called = names_of_calls();
  for (const auto& calls : {structure_calls(), op_calls()}) {
    for (const GraphCall& call : calls) {
      if (!call.op.empty()) called.insert(call.op);
    }
  }
  for (const OpDef* op : all_ops()) {
    EXPECT_EQ(called.contains(op->name), !others.contains(op->name) || op->name == "shard")
        << op->name << ": give it a row in op_calls.cpp, or say here who adds it";
  }
  for (const GraphCall& call : op_calls()) {
    const std::string_view op = call.op.empty() ? call.name : call.op;
    EXPECT_NE(find_op(op), nullptr) << call.name << " is no op";
  }
}

CallJson parsed(const char* text) { return CallJson::parse(text); }

std::string error_of_call(OpenGraph& graph, const char* call) {
  try {
    graph.call(parsed(call));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was wrong";
}

TEST(GraphCalls, AGraphIsWritten) {
  OpenGraph graph;
  EXPECT_EQ(graph.call(parsed(R"({"op": "batch", "name": "x", "shape": [4, 3]})")),
            parsed(R"({"values": [{"id": "%0", "shape": [4, 3], "dtype": "f32"}]})"));
  graph.call(parsed(R"({"op": "scope", "name": "a"})"));
  graph.call(parsed(R"({"op": "linear", "x": "%0", "name": "up", "out": 5, "at": "net.py:7"})"));
  EXPECT_THROW(graph.finished(), Error);
  graph.call(parsed(R"({"op": "end_scope"})"));
  const CallJson top = graph.call(parsed(R"({"op": "top_k", "x": "%4", "k": 2})"));
  EXPECT_EQ(top["values"][1], parsed(R"({"id": "%5.1", "shape": [4, 2], "dtype": "i32"})"));
  graph.call(parsed(R"({"op": "output", "name": "ids", "value": "%5.1"})"));
  EXPECT_EQ(graph.finished().states()[0].path, "a.up.weight");
  EXPECT_EQ(graph.finished().node(2).where, Where::read("net.py", 7));
}

TEST(GraphCalls, WhatIsWrongIsSaid) {
  const struct {
    const char *call, *says;
  } cases[] = {
      {R"({"op": "matmull"})", "there is no op or layer 'matmull'; nearest is matmul"},
      {R"({"op": "relu"})", "relu: x is missing"},
      {R"({"op": "matmul", "a": "%0", "b": "%1", "trans": true})",
       "matmul has no argument 'trans'; nearest are"},
      {R"({"op": "relu", "x": "%77"})", "which this graph does not have"},
      {R"({"op": "relu", "x": "%0.3"})", "which this graph does not have"},
      {R"({"op": "relu", "x": 3})", "relu: x is 3; give a value of the graph"},
      {R"({"op": "softmax", "x": "%0", "dim": 2})",
       "dim is 2, but the value is f32[4,3]; give -2 to 1"},
      {R"({"op": "sum", "x": "%0", "dims": [0, -2]})", "dims names dim 0 twice"},
      {R"({"op": "add", "a": 1, "b": 2})", "add is of two numbers"},
      {R"({"op": "add", "a": "%1", "b": 0.5})", "b is 0.5, which no i32 holds"},
      {R"({"op": "cast", "x": "%0", "dtype": "f33"})", "dtype is 'f33'; it can be f32, f64"},
      {R"({"op": "batch", "name": "x", "shape": [1]})", "batch input 'x' is declared twice"},
      {R"({"op": "batch", "name": "z", "shape": [-1]})", "-1"},
      {R"({"op": "linear", "x": "%0", "name": "up", "out": 4, "init": {"kind": "normal"}})",
       "init: value is missing"},
      {R"({"op": "self_attention", "x": "%0", "layer": {"heads": 2}})", "give floats [b, s, d]"},
      {R"({"op": "feed_forward", "x": "%0", "layer": {"headss": 2}})",
       "layer has no 'headss'; nearest is heads"},
      {R"({"op": "update", "loss": "%2", "optimizer": {"lr": 0.1}, "samples": 4})",
       "the optimizer has nothing to update"},
      {R"({"op": "update", "loss": "%0", "optimizer": {"lr": 0.1}, "samples": 4})",
       "give one float"},
      {R"({"op": "end_scope"})", "no scope is open"},
      {R"([])", "a call is an object"},
  };
  for (const auto& [call, says] : cases) {
    SCOPED_TRACE(call);
    OpenGraph graph;
    graph.call(parsed(R"({"op": "batch", "name": "x", "shape": [4, 3]})"));
    graph.call(parsed(R"({"op": "batch", "name": "n", "shape": [4], "dtype": "i32"})"));
    graph.call(parsed(R"({"op": "sum", "x": "%0"})"));
    EXPECT_NE(error_of_call(graph, call).find(says), std::string::npos)
        << error_of_call(graph, call);
  }
}

// A layer that fails has added some of its nodes.
TEST(GraphCalls, AGraphThatACallLeftHalfDoneIsRefused) {
  OpenGraph graph;
  graph.call(parsed(R"({"op": "batch", "name": "x", "shape": [4, 3]})"));
  EXPECT_NE(error_of_call(graph, R"({"op": "matmul", "a": "%0", "b": "%0"})").find("written at"),
            std::string::npos + 1);
  EXPECT_NE(error_of_call(graph, R"({"op": "relu", "x": "%0"})").find("write it anew"),
            std::string::npos);
  EXPECT_THROW(graph.finished(), Error);
}

}  // namespace
}  // namespace tessera
