/// The interpreter is a judge of its own: with any one thing missing that partition owes, a
/// `clear_padding`, a collective, the right reduction, the numbers of a step are wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/index.h"
#include "tessera/ir/parse.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/ops/table.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/interpret_program.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/rewrite.h"
#include "tessera/passes/simplify.h"

namespace tessera {
namespace {

using Outputs = std::map<std::string, HostTensor>;

/// 22 rows over two micro-batches and two ranks, and dims of 7 and 9 over two ranks: everything has
/// padding somewhere. What is reduced is of one sign, so that a maximum with a zero
/// among what it compares is wrong.
Graph step() {
  Builder b;
  const Value x = b.batch("x", {DType::F32, {22, 5}, {}});
  const Value counts = b.batch("counts", {DType::I32, {22, 9}, {}});
  const Value ids = b.batch("ids", {DType::I32, {22}, {}});
  const Value w = b.state("w", {DType::F32, {5, 7}, {}}, Role::Parameter, {});
  const Value table = b.state("table", {DType::F32, {7, 3}, {}}, Role::Parameter, {});
  const Value h = einsum("m k, k n -> m n", x, w, {});  // below zero
  const Value back = einsum("m n, k n -> m k", h, w, {});
  const auto metric = [&](const char* name, Value v) { b.output(Output::Kind::Metric, name, v); };
  metric("largest", max(h, {0, 1}));
  metric("largest by column", max(h, 0));
  metric("sum", sum_all(h));
  metric("squares", sum_squares(h));
  metric("back", sum_all(back * back));
  metric("largest count", max(counts, {0, 1}));
  metric("sum of counts", sum_all(counts));
  metric("rows of the table", sum_squares(gather(ids, table + 2.0)));  // of both signs
  metric("largest of the table", max(table, {0, 1}));
  b.next(w, w + einsum("m k, m n -> k n", x, h, {}));
  b.next(table, table - scatter_add(ids, slice(x, 1, 0, 3), 7));
  return b.finish();
}

Strategy strategy() {
  Strategy out;
  out.mesh = Mesh({{"dp", 2}, {"tp", 2}, {std::string(kMicrobatchAxis), 2, Level::Time}});
  out.batch = {{"dp", std::string(kMicrobatchAxis)}};
  out.pins = {{"w", parse_sharding("[-,tp]")},
              {"table", parse_sharding("[tp,-]")},
              {"counts", parse_sharding("[dp.mb,tp]")}};
  return out;
}

/// From `first` to `last`, no two alike: the largest of a reduction does not lie on the first rank.
Bindings inputs(const Graph& graph) {
  Bindings out;
  const auto fill = [](HostTensor value, double first, double last) {
    const auto n = static_cast<double>(value.numel());
    for (std::int64_t i = 0; i < value.numel(); ++i)
      value.set(i, first + (last - first) * (static_cast<double>(i) + 0.5) / n);
    return value;
  };
  out.batch = {{"x", fill(HostTensor(DType::F32, {22, 5}), 2.5, 0.5)},
               {"counts", fill(HostTensor(DType::I32, {22, 9}), -1000, -5)},
               {"ids", fill(HostTensor(DType::I32, {22}), 0, 7)}};
  for (const State& state : graph.states())
    out.states.emplace(state.path, fill(HostTensor(graph.type(state.value)), -3, -1));
  return out;
}

Outputs whole(const Graph& graph) {
  Interpretation how;
  how.f64 = true;
  const std::vector<HostTensor> values = interpret(graph, inputs(graph), how);
  Outputs out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Output& output = graph.outputs()[i];
    out.emplace((output.kind == Output::Kind::Next ? "next " : "") + output.name, values[i]);
  }
  return out;
}

/// The first output that is not what one device computes; empty where all are.
std::string wrong(const Outputs& expected, const Graph& graph, const Program& program,
                  const Deleted& deleted = {}) {
  Interpretation how;
  how.f64 = true;
  Outputs got;
  try {
    got = interpret_program(program, inputs(graph), how, deleted);
  } catch (const Error& error) {
    return error.what();  // replicas differ, or a state's padding is no longer zero
  }
  for (const auto& [name, value] : expected) {
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      if (!(std::abs(got.at(name).at(i) - value.at(i)) <= 1e-10 * (1 + std::abs(value.at(i)))))
        return text(name, " [", i, "] is ", got.at(name).at(i), ", not ", value.at(i));
    }
  }
  return {};
}

/// The graph without a node that hands its operand on.
Graph without(const Graph& graph, NodeId node) {
  Rewrite rewrite(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (id != node) {
      rewrite.copy(id);
    } else {
      rewrite.map({id, 0}, rewrite(graph.node(id).inputs[0]));
    }
  }
  return rewrite.finish();
}

/// The graph with another reduction in a node's attribute `monoid`.
Graph with_monoid(const Graph& graph, NodeId node, Monoid monoid) {
  Rewrite rewrite(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (id != node) {
      rewrite.copy(id);
      continue;
    }
    Node other = graph.node(id);
    const int attr = other.op->attrs.find("monoid");
    other.attrs = other.attrs.with(static_cast<std::size_t>(attr), std::string(to_text(monoid)));
    const ValueId input = rewrite(other.inputs[0]).id();
    rewrite.map({id, 0}, rewrite.to().copy(std::move(other), {input})[0]);
  }
  return rewrite.finish();
}

/// The graph in which micro-batches combine in the value of output `i` by another reduction.
Graph with_accumulation(const Graph& graph, std::size_t i, Monoid monoid) {
  Rewrite rewrite(graph);
  for (NodeId id = 0; id < graph.size(); ++id) rewrite.copy(id);
  const Value value = rewrite(graph.outputs()[i].value);
  Placement placement = *graph.result(graph.outputs()[i].value).placement;
  placement.sharding =
      placement.sharding.without(kMicrobatchAxis).with_partial(kMicrobatchAxis, monoid);
  rewrite.to().set_placement(value, placement);
  return rewrite.finish();
}

class Owed : public testing::Test {
 protected:
  const Graph graph_ = step();
  const Outputs expected_ = whole(graph_);
  const Program program_ = partition(propagate(add_uses(graph_), strategy()));

  std::string wrong_with(std::size_t region, Graph other) const {
    Program program = program_;
    program.regions[region].graph = std::move(other);
    return wrong(expected_, graph_, program);
  }
};

}  // namespace

TEST_F(Owed, NothingIsMissing) {
  EXPECT_EQ(wrong(expected_, graph_, program_), "");
  const Program fused = fuse(program_);
  EXPECT_EQ(wrong(expected_, graph_, fused), "");
}

TEST_F(Owed, EveryClearingOfPadding) {
  int all = 0;
  std::set<std::string> monoids;
  for (std::size_t r = 0; r < program_.regions.size(); ++r) {
    const Graph& region = program_.regions[r].graph;
    for (NodeId id = 0; id < region.size(); ++id) {
      if (region.node(id).op != &kClearPadding) continue;
      ++all;
      monoids.insert(region.call(id).string("monoid"));
      EXPECT_NE(wrong_with(r, without(region, id)), "") << describe(region, id);
    }
  }
  EXPECT_GE(all, 8);
  EXPECT_EQ(monoids, (std::set<std::string>{"max", "sum"}));
}

TEST_F(Owed, EveryExchange) {
  int all = 0;
  for (const Region& region : program_.regions) {
    for (NodeId id = 0; id < region.graph.size(); ++id) {
      if (!region.graph.node(id).op->traits.exchanges) continue;
      ++all;
      EXPECT_NE(
          wrong(expected_, graph_, program_, {program_.index_of(region.kind, region.chunk), id}),
          "")
          << describe(region.graph, id);
    }
  }
  EXPECT_GE(all, 8);
}

TEST_F(Owed, EveryReduction) {
  int all = 0;
  for (std::size_t r = 0; r < program_.regions.size(); ++r) {
    const Graph& region = program_.regions[r].graph;
    for (NodeId id = 0; id < region.size(); ++id) {
      if (region.node(id).op->attrs.find("monoid") < 0) continue;
      for (const Monoid other : {Monoid::Sum, Monoid::Max, Monoid::Min}) {
        if (to_text(other) == region.call(id).string("monoid")) continue;
        ++all;
        EXPECT_NE(wrong_with(r, with_monoid(region, id, other)), "")
            << to_text(other) << " in " << describe(region, id);
      }
    }
  }
  EXPECT_GE(all, 30);
}

TEST_F(Owed, EveryReductionOverMicroBatches) {
  int all = 0;
  std::set<std::string_view> monoids;
  for (std::size_t r = 0; r < program_.regions.size(); ++r) {
    const Graph& region = program_.regions[r].graph;
    for (std::size_t i = 0; i < region.outputs().size(); ++i) {
      const Output& output = region.outputs()[i];
      if (output.kind != Output::Kind::Accumulate) continue;
      const Monoid monoid = reduction_over_time(region.result(output.value));
      monoids.insert(to_text(monoid));
      for (const Monoid other : {Monoid::Sum, Monoid::Max, Monoid::Min}) {
        if (other == monoid) continue;
        ++all;
        EXPECT_NE(wrong_with(r, with_accumulation(region, i, other)), "")
            << to_text(other) << " in " << output.name;
      }
    }
  }
  EXPECT_GE(all, 12);
  EXPECT_EQ(monoids, (std::set<std::string_view>{"max", "sum"}));
}

/// A state of 7 elements over two ranks, padded: all of its shards go to other ranks, and then it
/// is summed where it lies.
TEST(Permuted, IsReadableWhereItLay) {
  const struct {
    const char *why, *graph;
  } kCases[] = {{"a state, whose padding holds zeros",
                 R"(graph placed mesh a=2 b=2
%0 = state() path="w" dtype=f32 shape=[7] : f32[7] at [a]
state "w" = %0 parameter constant=0
%1 = reshard(%0) : f32[7] at [b]
%2 = sum(%0) dims=[0] keep=false : f32[] at []+a
%3 = reshard(%2) : f32[] at []
metric "permuted" = %1
metric "sum" = %3
)"},
                {"a result, whose padding an earlier sum had cleared",
                 R"(graph placed mesh a=2 b=2
%0 = state() path="w" dtype=f32 shape=[7] : f32[7] at [a]
state "w" = %0 parameter constant=0
%1 = identity(%0) : f32[7] at [a]
%2 = sum_squares(%1) : f32[] at []+a
%3 = reshard(%1) : f32[7] at [b]
%4 = sum(%1) dims=[0] keep=false : f32[] at []+a
%5 = reshard(%4) : f32[] at []
metric "permuted" = %3
metric "sum" = %5
)"}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.why);
    const Graph placed = parse_graph(c.graph, find_op);
    const Program program = partition(placed);
    const Graph& forward = program.regions[at(program.index_of(RegionKind::Forward, 0))].graph;
    const auto permutes = [](const Node& node) { return node.op == &kPermute; };
    EXPECT_EQ(std::ranges::count_if(forward.nodes(), permutes), 1);
    const HostTensor w = inputs(placed).states.at("w");
    HostTensor sum(DType::F64, {});
    for (std::int64_t i = 0; i < w.numel(); ++i) sum.set(0, sum.at(0) + w.at(i));
    EXPECT_EQ(wrong({{"permuted", w}, {"sum", sum}}, placed, program), "");
  }
}

}  // namespace tessera
