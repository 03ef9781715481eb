/// Ops on 16-bit floats compute in f32, and round each result once.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/harness.h"
#include "tessera/ir/print.h"
#include "tessera/ops/expansion.h"
#include "tessera/ops/optimizer_ops.h"

namespace tessera::test {

namespace {

/// Ops of which no operand can be a 16-bit float though it is an f32 in a row, and why.
const std::set<std::string_view> kF32Only = {
    // the graph inside says its types
    "fused"};

Tensors wide(const Tensors& tensors) {
  Tensors out;
  for (const HostTensor& one : tensors)
    out.push_back(is_16_bit(one.dtype()) ? one.cast(DType::F32) : one);
  return out;
}

/// The same numbers; every NaN is the same.
void expect_same(const HostTensor& got, const HostTensor& want) {
  ASSERT_EQ(to_text(got.type()), to_text(want.type()));
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double a = got.at(i), b = want.at(i);
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
        << "element " << i << " is " << a << ", expected " << b;
  }
}

bool any_16_bit(const Tensors& tensors) {
  return std::ranges::any_of(tensors, [](const HostTensor& t) { return is_16_bit(t.dtype()); });
}

}  // namespace

class SixteenBit : public testing::TestWithParam<DType> {};

TEST_P(SixteenBit, EachResultIsThatOfF32RoundedOnce) {
  int rounded = 0;
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(title(c));
    const Tensors ins = operands_in(c, GetParam());
    const bool floats = std::ranges::any_of(
        c.ins, [](const Operand& operand) { return operand.type.dtype == DType::F32; });
    EXPECT_EQ(any_16_bit(ins), floats && !kF32Only.contains(c.op->name));
    const Tensors got = evaluate(*c.op, ins, c.attrs), want = evaluate(*c.op, wide(ins), c.attrs);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(text("result ", i));
      const bool narrow = is_16_bit(got[i].dtype());
      expect_same(got[i], narrow ? want[i].cast(GetParam()) : want[i]);
      rounded += narrow;
    }
  }
  EXPECT_GT(rounded, 100);
}

/// Expansions as well: what ranks exchange is f32.
TEST_P(SixteenBit, ExpansionsHaveTheTypesOfTheirOps) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    if (c.op->expand == nullptr) continue;
    SCOPED_TRACE(title(c));
    const Tensors ins = operands_in(c, GetParam());
    if (!any_16_bit(ins)) continue;
    ++checked;
    Builder builder;
    std::vector<Value> values;
    for (const HostTensor& in : ins)
      values.push_back(builder.batch(text("in", values.size()), in.type()));
    const std::vector<Value> whole = builder.add_all(*c.op, values, c.attrs);
    const Graph alone = builder.so_far();  // the call refers into it while the builder grows
    const std::vector<Value> parts = expansion(alone.call(whole[0].id().node), values);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      EXPECT_EQ(to_text(parts[j].type()), to_text(whole[j].type())) << "result " << j;
      builder.output(Output::Kind::Metric, text("out", j), parts[j]);
    }
    const Tensors got = interpret(builder.finish(), bind(ins)),
                  want = evaluate(*c.op, ins, c.attrs);
    // Sums in another order may round to a neighbour.
    const double neighbour = GetParam() == DType::BF16 ? 0x1p-7 : 0x1p-10;
    for (std::size_t j = 0; j < got.size(); ++j) {
      for (std::int64_t i = 0; i < got[j].numel(); ++i)
        EXPECT_TRUE(is_near(got[j].at(i), want[j].at(i), 1e-5, neighbour))
            << "result " << j << ", element " << i << ": " << got[j].at(i) << ", expected "
            << want[j].at(i);
    }
  }
  EXPECT_GE(checked, 8);
}

/// An update that makes a copy too: the same results as without, and result 0 rounded once.
TEST_P(SixteenBit, CopiesOfUpdatesAreTheParameterRounded) {
  int checked = 0;
  for (const Case& c : all_cases()) {
    if (c.op->attrs.find(kCopyDType.name) < 0) continue;
    SCOPED_TRACE(title(c));
    ++checked;
    const Tensors ins = wide(operands_in(c, GetParam()));
    const Tensors want = evaluate(*c.op, ins, c.attrs),
                  got = evaluate(*c.op, ins, c.attrs.with(c.attrs.size(), GetParam()));
    ASSERT_EQ(got.size(), want.size() + 1);
    for (std::size_t i = 0; i < want.size(); ++i) expect_same(got[i], want[i]);
    expect_same(got.back(), want[0].cast(GetParam()));
  }
  EXPECT_GE(checked, 6);  // Adam, AdamW, SGD with and without Nesterov, steps that are skipped
}

INSTANTIATE_TEST_SUITE_P(Both, SixteenBit, testing::Values(DType::BF16, DType::F16),
                         [](const auto& info) { return std::string(to_text(info.param)); });

}  // namespace tessera::test
