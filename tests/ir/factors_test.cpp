// Factor rules: the grammar, what is reduced, what may travel partial.
#include "tessera/ir/factors.h"

#include <gtest/gtest.h>

#include "ir/small_ops.h"

namespace tessera {
namespace {

struct Case {
  const char *name, *rule;
  std::vector<int> ndims;
  const char* text;  // as printed; empty: as `rule`
};

const Case kCases[] = {
    {"matmul", "b m k, k n -> b m n | each 0 1", {3, 2, 3}, ""},
    {"add", "b s d, d -> b s d | joint 0 1", {3, 1, 3}, ""},
    {"softmax", "b s d -> b s d | d:stat", {3, 3}, ""},
    {"attention",
     "b h q d, b h k d, b h k d -> b h q d | k:stat d:whole",
     {4, 4, 4, 4},
     "b h q d, b h k d, b h k d -> b h q d | d:whole k:stat"},
    {"max and min", "b d e -> b | d:max e:min", {3, 1}, ""},
    {"a compound dim", "b (h e) -> b h e", {2, 3}, ""},
    {"a dim without a factor", "b . -> b d", {2, 2}, ""},
    {"leading dims", "... k, n k -> ... n", {4, 2, 4}, "..3 ..2 ..1 k, n k -> ..3 ..2 ..1 n"},
    {"no leading dims", "... k, n k -> ... n", {1, 2, 1}, "k, n k -> n"},
    {"aligned at the right", "..., ... -> ...", {1, 3, 3}, "..1, ..3 ..2 ..1 -> ..3 ..2 ..1"},
    {"a scalar result", "b d -> ", {2, 0}, ""},
    {"no operands", "-> ...", {2}, " -> ..2 ..1"},
    {"several results", "b d -> b d, b, b | d:stat", {2, 2, 1, 1}, ""},
    {"a scalar operand", "b d, -> b d", {2, 0, 2}, "b d,  -> b d"},
};

TEST(Factors, RulesReadAndPrint) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Factors factors = Factors::parse(c.rule, c.ndims);
    EXPECT_EQ(to_text(factors), *c.text != '\0' ? c.text : c.rule);
    // What is printed means the same.
    EXPECT_EQ(to_text(Factors::parse(to_text(factors), c.ndims)), to_text(factors));
  }
}

TEST(Factors, MissingFactorsAreReduced) {
  const Factors matmul = Factors::parse("m k, k n -> m n | each 0 1", {2, 2, 2});
  const int m = matmul.find("m"), k = matmul.find("k");
  EXPECT_TRUE(matmul.reduces(k, 0));
  EXPECT_FALSE(matmul.reduces(m, 0));
  EXPECT_EQ(matmul.monoid(k), Monoid::Sum);
  EXPECT_EQ(matmul.find("x"), -1);
  EXPECT_TRUE(matmul.has(matmul.ins[0], k));
  EXPECT_FALSE(matmul.has(matmul.outs[0], k));

  const Factors max = Factors::parse("b d -> b | d:max", {2, 1});
  EXPECT_TRUE(max.reduces(max.find("d"), 0));
  EXPECT_EQ(max.monoid(max.find("d")), Monoid::Max);
  EXPECT_EQ(Factors::parse("d -> | d:min", {1, 0}).monoid(0), Monoid::Min);
  for (const char* kind : {"stat", "whole"}) {
    EXPECT_FALSE(Factors::parse(text("b d -> b | d:", kind), {2, 1}).reduces(1, 0)) << kind;
  }
  // Reduced in one result, kept in the other.
  const Factors two = Factors::parse("b d -> b d, b", {2, 2, 1});
  EXPECT_FALSE(two.reduces(two.find("d"), 0));
  EXPECT_TRUE(two.reduces(two.find("d"), 1));
}

TEST(Factors, LinearOperands) {
  const Factors select = Factors::parse("d, d, d -> d | joint 1 2", {1, 1, 1, 1});
  EXPECT_EQ(select.linear, Linear::Joint);
  EXPECT_FALSE(select.is_linear(0));
  EXPECT_TRUE(select.is_linear(1));
  EXPECT_TRUE(select.is_linear(2));
  const Factors div = Factors::parse("d, d -> d | each 0", {1, 1, 1});
  EXPECT_EQ(div.linear, Linear::Each);
  EXPECT_TRUE(div.is_linear(0));
  EXPECT_FALSE(div.is_linear(1));
  EXPECT_FALSE(Factors::parse("d -> d", {1, 1}).is_linear(0));
}

struct BadCase {
  const char* rule;
  std::vector<int> ndims;
  const char* says;
};
const BadCase kBad[] = {
    {"m k, k n", {2, 2, 2}, "has no ->"},
    {"m k -> m", {2, 1, 1}, "has fewer operands and results than the op: 2 of 3"},
    {"m k, k n -> m n", {2, 2}, "has more operands and results than the op"},
    {"m k -> m k", {3, 2}, "gives 2 dims to a value of 3"},
    {"m k -> m | k:sum", {2, 1}, "'k:sum' is not like d:stat"},
    {"m -> m | q:stat", {1, 1}, "has no factor 'q'"},
};

TEST(Factors, BadRulesAreBugsOfOurs) {
  for (const BadCase& c : kBad) {
    SCOPED_TRACE(c.rule);
    try {
      Factors::parse(c.rule, c.ndims);
      ADD_FAILURE() << "is accepted";
    } catch (const Broken& error) {
      EXPECT_NE(std::string(error.what()).find(c.says), std::string::npos) << error.what();
    }
  }
}

TEST(Factors, SizesComeFromTheTypes) {
  Builder b;
  const Value x = b.batch("x", {DType::F32, {2, 3}, {}});
  const Value y = b.add(kTestAdd, {x, x});
  const Factors factors = b.so_far().factors(y.id().node);
  EXPECT_EQ(factors.list[static_cast<std::size_t>(factors.find("..1"))].size, 3);
  EXPECT_EQ(factors.list[static_cast<std::size_t>(factors.find("..2"))].size, 2);
}

TEST(Factors, SizesMustAgree) {
  const TensorType a{DType::F32, {2, 3}, {}}, b{DType::F32, {2, 4}, {}};
  const Attrs none;
  EXPECT_THROW(factors_of(OpCall(kTestAdd, {&a, &b}, none, {&a})), Broken);
  EXPECT_THROW(factors_of(OpCall(kTestPair, {&a}, none, {&a, &a})), Broken);  // has no rule
}

}  // namespace
}  // namespace tessera
