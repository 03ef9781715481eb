// Attributes: text and back, and what counts as the same.
#include "tessera/ir/attr.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/small_ops.h"

namespace tessera {
namespace {

struct Case {
  AttrKind kind;
  AttrValue value;
  std::string text;
};

std::vector<Case> cases() {
  using Ints = std::vector<std::int64_t>;
  using Floats = std::vector<double>;
  return {
      {AttrKind::Int, std::int64_t{-12}, "-12"},
      {AttrKind::Int, std::numeric_limits<std::int64_t>::min(), "-9223372036854775808"},
      {AttrKind::Float, 0.1, "0.1"},
      {AttrKind::Float, 1.0 / 3, "0.3333333333333333"},
      {AttrKind::Float, -0.0, "-0"},
      {AttrKind::Float, 1e300, "1e+300"},
      {AttrKind::Float, -std::numeric_limits<double>::infinity(), "-inf"},
      {AttrKind::Float, std::numeric_limits<double>::quiet_NaN(), "nan"},
      {AttrKind::Bool, true, "true"},
      {AttrKind::Bool, false, "false"},
      {AttrKind::Text, std::string(), "\"\""},
      {AttrKind::Text, std::string("b s k, n k -> b s n"), "\"b s k, n k -> b s n\""},
      {AttrKind::Text, std::string("a \"b\" \\n\n\t\0", 11), "\"a \\\"b\\\" \\\\n\\n\\x09\\x00\""},
      {AttrKind::Ints, Ints{}, "[]"},
      {AttrKind::Ints, Ints{0, -1, 768}, "[0,-1,768]"},
      {AttrKind::Floats, Floats{}, "[]"},
      {AttrKind::Floats, Floats{1, -0.0, 1.0 / 3, 1e-300}, "[1,-0,0.3333333333333333,1e-300]"},
      {AttrKind::Floats, Floats{1, 0.0, 1.0 / 3, 1e-300}, "[1,0,0.3333333333333333,1e-300]"},
      {AttrKind::Floats, Floats{std::numeric_limits<double>::quiet_NaN()}, "[nan]"},
      {AttrKind::DType, DType::BF16, "bf16"},
  };
}

TEST(Attr, TextAndBack) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(to_text(c.value), c.text);
    EXPECT_TRUE(same_attr(parse_attr(c.kind, c.text), c.value));
  }
}

TEST(Attr, NoTwoOfTheseAreTheSame) {
  const std::vector<Case> all = cases();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(same_attr(all[i].value, all[j].value), i == j)
          << all[i].text << " and " << all[j].text;
    }
  }
  EXPECT_FALSE(same_attr(0.0, -0.0));  // 1 / x tells them apart
  EXPECT_FALSE(same_attr(std::int64_t{1}, 1.0));
}

TEST(Attr, GraphsAreComparedByWhatTheyHold) {
  const auto graph = [](double value) {
    Builder b;
    b.constant(value);
    return AttrValue(std::make_shared<const Graph>(b.finish()));
  };
  EXPECT_TRUE(same_attr(graph(1), graph(1)));
  EXPECT_FALSE(same_attr(graph(1), graph(2)));
  EXPECT_EQ(to_text(graph(1)), "{\ngraph global\n%0 = constant() value=1 dtype=f32 : f32[]\n}");
}

struct BadCase {
  AttrKind kind;
  const char *text, *says;
};
const BadCase kBad[] = {
    {AttrKind::Int, "", "'' is not a number"},
    {AttrKind::Int, "1.5", "'1.5' is not a number"},
    {AttrKind::Int, "9223372036854775808", "'9223372036854775808' is not a number"},
    {AttrKind::Float, "half", "'half' is not a number"},
    {AttrKind::Bool, "yes", "'yes' is neither true nor false"},
    {AttrKind::Text, "bare", "'bare' is not a quoted text"},
    {AttrKind::Text, "\"", "'\"' is not a quoted text"},
    {AttrKind::Text, "\"a\"b\"", "'\"a\"b\"' has a quote inside; write it \\\""},
    {AttrKind::Text, "\"\\q\"",
     "'\"\\q\"' has an unknown escape; known are \\\" \\\\ \\n and \\x with two digits"},
    {AttrKind::Text, "\"\\\"",
     "'\"\\\"' has an unknown escape; known are \\\" \\\\ \\n and \\x with two digits"},
    {AttrKind::Text, "\"\\x1\"",
     "'\"\\x1\"' has an unknown escape; known are \\\" \\\\ \\n and \\x with two digits"},
    {AttrKind::Ints, "1,2", "'1,2' is not like [1,2]"},
    {AttrKind::Ints, "[1,]", "'' is not a number"},
    {AttrKind::Ints, "[0.5]", "'0.5' is not a number"},
    {AttrKind::Floats, "0.5", "'0.5' is not like [1,2]"},
    {AttrKind::Floats, "[0.5,half]", "'half' is not a number"},
    {AttrKind::DType, "float",
     "unknown dtype 'float'; known are f32, f64, bf16, f16, i32, i64, bool"},
    {AttrKind::Graph, "{}", "a graph as an attribute is read by parse_graph, not from '{}'"},
};

TEST(Attr, ErrorsSayWhatIsExpected) {
  for (const BadCase& c : kBad) {
    try {
      parse_attr(c.kind, c.text);
      ADD_FAILURE() << c.text << " is accepted";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), c.says);
    }
  }
}

TEST(Attr, DefsAreFoundByName) {
  constexpr AttrDefs kDefs = {{"dim", AttrKind::Int}, {"keep", AttrKind::Bool}};
  static_assert(kDefs.size() == 2 && kDefs.find("keep") == 1 && kDefs.find("none") == -1);
  EXPECT_EQ(kDefs[0].name, "dim");
}

}  // namespace
}  // namespace tessera
