// Text from values, and the nearest known names.
#include "tessera/base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"

namespace tessera {
namespace {

TEST(Text, PartsAreJoined) {
  EXPECT_EQ(
      text("a ", 1, ' ', true, " ", std::string("b"), " ", 0.5, " ", -3, " ", std::uint64_t{7}),
      "a 1 true b 0.5 -3 7");
  EXPECT_EQ(text(), "");
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(join(std::vector<std::string>{}, "."), "");
}

TEST(Text, NumbersAreTheShortestThatReadBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.1f), "0.1");
  EXPECT_EQ(number_text(1.0), "1");
  EXPECT_EQ(number_text(-0.0), "-0");
  EXPECT_EQ(number_text(1e-7), "1e-07");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(1.0f / 3), "0.33333334");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(number_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(number_text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  for (const double x : {0.1 + 0.2, 5e-324, std::numeric_limits<double>::max(), 123456789.123}) {
    EXPECT_EQ(std::strtod(number_text(x).c_str(), nullptr), x);
  }
}

TEST(Text, SplitKeepsEmptyParts) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split("a,b,,c", ','), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(split(",", ','), (Parts{"", ""}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_TRUE(starts_with("layers.1", "layers"));
  EXPECT_FALSE(starts_with("lay", "layers"));
}

TEST(Text, LargeNumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(10 * 1024 * 1024), "10.0 MiB");
  EXPECT_EQ(bytes_text(std::int64_t{200} << 30), "200 GiB");
}

struct NearestCase {
  const char* name;
  std::vector<std::string> found;
};

TEST(Text, NearestNames) {
  const std::vector<std::string> known = {
      "steps", "save-every", "seed", "micro-batch-size", "global-batch-size", "dropout"};
  const NearestCase cases[] = {
      {"step", {"steps", "seed"}},  // one letter away, then two
      {"droput", {"dropout"}},
      {"micro-batch", {"micro-batch-size"}},  // the front of a long name
      {"batch-size", {"global-batch-size", "micro-batch-size"}},
      {"zzzzzzzz", {}},
  };
  for (const NearestCase& c : cases) {
    std::vector<std::string> found = nearest(c.name, known);
    if (std::string(c.name) == "batch-size") std::sort(found.begin(), found.end());  // equally near
    EXPECT_EQ(found, c.found) << c.name;
  }
  EXPECT_EQ(nearest("step", known, 1), std::vector<std::string>{"steps"});
}

TEST(Text, NothingPrintedIsATerminalsCommand) {
  const struct {
    std::string_view text, printed;
  } cases[] = {
      {"layers.0.w\n\tcaf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82",
       "layers.0.w\n\tcaf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82"},
      {"\x1B[31m", "\\x1b[31m"},
      {"\xC2\x9B"
       "31m",
       "\\xc2\\x9b31m"},
      {"\x9B"
       "31m",
       "\\x9b31m"},
      {"\xC2\xA0", "\xC2\xA0"},
      {"\xE2\x82", "\\xe2\\x82"},
      {"\xE0\x82\x9B", "\\xe0\\x82\\x9b"},
      {"\x7F\r", "\\x7f\\x0d"},
  };
  for (const auto& c : cases) EXPECT_EQ(printable(c.text), c.printed);
}

TEST(Error, CarriesItsFaultAndItsLines) {
  const Error error(Fault::Data, "no text");
  EXPECT_EQ(error.fault(), Fault::Data);
  EXPECT_STREQ(error.with("in corpus x").what(), "no text\n    in corpus x");
  EXPECT_EQ(error.with("x").fault(), Fault::Data);
  EXPECT_THROW(require(false, "a ", 1), Error);
  EXPECT_NO_THROW(require(true, "a"));
  try {
    check(1 > 2, "one is not ", 2);
    ADD_FAILURE() << "is accepted";
  } catch (const Error& broken) {
    EXPECT_EQ(broken.fault(), Fault::Internal);
    EXPECT_STREQ(broken.what(),
                 "internal error: one is not 2; please report this with the command");
  }
}

}  // namespace
}  // namespace tessera
