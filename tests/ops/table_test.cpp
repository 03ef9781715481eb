/// Every op of the table has all its columns, and a row to be tested by.

#include "tessera/ops/table.h"
#include "tessera/ops/dynamic_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ops/harness.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"

namespace tessera::test {

namespace {

/// Ops whose operands get no gradient, and why.
const std::set<std::string_view> kWithoutGradient = {
    // results are bools or integers, or there is no float operand
    "equal", "not_equal", "less", "less_equal", "logical_and", "logical_or", "logical_not",
    "is_finite", "within_capacity", "one_hot", "iota", "random_uniform", "random_normal", "random_truncated_normal",
    // gradients: nothing here needs a second derivative
    "grad", "silu_grad", "gelu_grad", "layer_norm_grad", "rms_norm_grad", "cross_entropy_grad",
    "attention_grad", "grouped_outer",
    // that is what it is for
    "stop_gradient",
    // of angles only
    "cos",
    // updates stand behind the gradients
    "adam", "lamb_direction", "sgd",
    // made by passes that run after grad
    "fused", "merge_attention"};

bool needs_expansion(const Factors& factors) {
  return std::any_of(factors.list.begin(), factors.list.end(),
                     [](const Factor& factor) { return factor.kind == FactorKind::Stat; });
}

}  // namespace

TEST(OpTable, ColumnsAreFilled) {
  std::set<std::string_view> names;
  for (const OpDef* op : all_ops()) {
    SCOPED_TRACE(op->name);
    EXPECT_FALSE(op->name.empty());
    EXPECT_TRUE(names.insert(op->name).second) << "two ops have this name";
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_FALSE(op->doc.empty());
    EXPECT_NE(op->infer, nullptr);
    EXPECT_NE(op->factors, nullptr);
    if (op->traits.leaf) continue;
    // What ranks do together has no meaning on one of them.
    EXPECT_EQ(op->reference.f32 == nullptr, op->traits.exchanges);
    EXPECT_EQ(op->reference.f64 == nullptr, op->traits.exchanges);
    if (!op->traits.inserted) {
      EXPECT_EQ(op->grad == nullptr, kWithoutGradient.contains(op->name))
          << "list it, or give it a gradient";
    }
  }
}

TEST(OpTable, EveryOpHasARow) {
  std::set<const OpDef*> tried;
  for (const Case& c : all_cases()) tried.insert(c.op);
  for (const OpDef* op : all_ops()) {
    if (op->traits.leaf || op->traits.inserted) continue;
    EXPECT_TRUE(tried.contains(op)) << op->name;
  }
}

/// Kernels may compute what does not depend on its place block by block. Nothing else tells them of
/// random numbers, which are drawn by a key.
TEST(OpTable, RandomNumbersDependOnThePlace) {
  int drawing = 0;
  for (const OpDef* op : all_ops()) {
    if (op->attrs.find("key") < 0) continue;
    EXPECT_TRUE(op->traits.by_place) << op->name;
    ++drawing;
  }
  EXPECT_GE(drawing, 6);
}

/// A shard's attributes are made of its shape, so each that holds sizes of the result must say so.
TEST(OpTable, AttributesSayWhichSizesTheyHold) {
  int shapes = 0;
  for (const OpDef* op : all_ops()) {
    SCOPED_TRACE(op->name);
    EXPECT_EQ(op->attrs.find("shape"), op->attrs.shape_of_result());
    shapes += op->attrs.shape_of_result() >= 0 ? 1 : 0;
  }
  EXPECT_GE(shapes, 12);
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    Builder builder;
    const Shape result = use(builder, c).outs[0].shape();
    const int i = c.op->attrs.shape_of_result();
    if (i < 0) continue;
    const AttrValue& told = c.attrs[static_cast<std::size_t>(i)];
    EXPECT_EQ(Shape(std::get<std::vector<std::int64_t>>(told)), result);
  }
}

/// Propagation leaves elements on the rank that has them where this is so, whatever the others are.
TEST(OpTable, ResultsAreZeroWhereTheirOperandsAre) {
  int tried = 0;
  for (const Case& c : all_cases()) {
    for (std::size_t i = 0; i < c.ins.size(); ++i) {
      if ((c.op->zero_where >> i & 1U) == 0) continue;
      SCOPED_TRACE(text(title(c), ", operand ", i));
      EXPECT_TRUE(c.op->traits.elementwise);
      Tensors ins = operands(c);
      for (std::int64_t e = 0; e < ins[i].numel(); ++e) ins[i].set(e, 0);
      const HostTensor out = results(c, ins)[0];
      for (std::int64_t e = 0; e < out.numel(); ++e) EXPECT_EQ(out.at(e), 0);
      ++tried;
    }
  }
  EXPECT_GE(tried, 12);
}

TEST(OpTable, RowsHaveDifferentTitles) {
  std::set<std::string> titles;
  for (const Case& c : all_cases()) EXPECT_TRUE(titles.insert(title(c)).second) << title(c);
}

TEST(OpTable, RulesFitAndReadBack) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    Builder builder;
    const Use used = use(builder, c);
    const Factors factors = builder.so_far().factors(used.outs[0].id().node);
    ASSERT_EQ(factors.ins.size(), used.ins.size());
    ASSERT_EQ(factors.outs.size(), used.outs.size());
    const auto fits = [&](const Factors::Dims& dims, const Value& value) {
      ASSERT_EQ(static_cast<int>(dims.size()), value.ndim());
      for (int d = 0; d < value.ndim(); ++d) {
        std::int64_t size = 1;
        for (const int f : dims[static_cast<std::size_t>(d)])
          size *= factors.list[static_cast<std::size_t>(f)].size;
        EXPECT_EQ(size, value.shape()[d])
            << to_text(factors) << ", dim " << d << " of " << to_text(value.type());
      }
    };
    for (std::size_t i = 0; i < used.ins.size(); ++i) fits(factors.ins[i], used.ins[i]);
    for (std::size_t i = 0; i < used.outs.size(); ++i) fits(factors.outs[i], used.outs[i]);
    EXPECT_TRUE(!needs_expansion(factors) || c.op->expand != nullptr) << to_text(factors);
    EXPECT_EQ(factors.linear == Linear::None, factors.linear_operands.empty());
  }
}

TEST(OpTable, RowsAreTheSameReadBackFromText) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    Builder builder;
    const Use used = use(builder, c);
    for (std::size_t j = 0; j < used.outs.size(); ++j)
      builder.output(Output::Kind::Metric, text("out", j), used.outs[j]);
    const Graph graph = builder.finish();
    const std::string printed = to_text(graph);
    const Graph read = parse_graph(printed, find_op);
    EXPECT_TRUE(read == graph) << printed;
    EXPECT_EQ(to_text(read), printed);
  }
}

/// What plans and profiles add up. A row may compute nothing (a sum of one value), not each of an
/// op.
TEST(OpTable, RowsHaveACost) {
  std::set<std::string_view> counting, counted;
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    Builder builder;
    const NodeId node = use(builder, c).outs[0].id().node;
    const Graph graph = builder.finish();
    const OpCall call = graph.call(node);
    double results = 0;
    for (int j = 0; j < call.num_out(); ++j) results += static_cast<double>(call.out(j).bytes());
    if (c.op == &kDynamicUpdate) results = static_cast<double>(call.in(1).bytes());  // in place
    EXPECT_GE(bytes_moved(call), results) << "every result is written";
    if (c.op->flops == nullptr) continue;
    const double flops = c.op->flops(call);
    EXPECT_TRUE(std::isfinite(flops) && flops >= 0) << flops;
    counting.insert(c.op->name);
    if (flops > 0) counted.insert(c.op->name);
  }
  EXPECT_EQ(counted, counting);
}

/// What a kernel computes in f32 is what it computes in f64, to f32's precision.
TEST(OpTable, BothPrecisionsAgree) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    // The operands of both runs are numbers that f32 holds.
    Tensors narrow, wide;
    for (const HostTensor& in : operands(c)) {
      narrow.push_back(in.dtype() == DType::F64 ? in.cast(DType::F32) : in);
      wide.push_back(in.dtype() == DType::F64 ? narrow.back().cast(DType::F64) : in);
    }
    const Tensors want = results(c, wide);
    const Tensors got = evaluate(*c.op, narrow, c.attrs);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const bool is_f32 = got[i].dtype() == DType::F32;
      // Sums of a few dozen products: some hundred roundings of 2^-24.
      expect_near(is_f32 ? got[i].cast(DType::F64) : got[i], want[i], is_f32 ? 2e-5 : 0,
                  is_f32 ? 2e-5 : 1e-6, text("result ", i));
    }
  }
}

}  // namespace tessera::test
