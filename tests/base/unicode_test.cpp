#include "tessera/base/unicode.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Unicode, KindOfCharacter) {
  struct Case {
    char32_t c;
    CharacterKind kind;
  };
  using enum CharacterKind;
  const Case cases[] = {
      {U'a', Letter},      {U'Z', Letter},      {U'\u00aa', Letter}, {U'\u00e9', Letter},
      {U'\u4e00', Letter}, {U'\u02b0', Letter}, {U'0', Number},      {U'9', Number},
      {U'\u00b2', Number}, {U'\u0663', Number}, {U'\u2167', Number}, {U' ', Blank},
      {U'\t', Blank},      {U'\u00a0', Blank},  {U'\u3000', Blank},  {U'\u200b', Other},
      {U'@', Other},       {U'[', Other},       {U'`', Other},       {U'{', Other},
      {U'/', Other},       {U':', Other},       {U'\u0301', Other},  {U'\u20ac', Other},
      {U'\u001c', Other},  {U'\0', Other},      {0x10FFFF, Other},   {0x3134A, Letter},
      {0x3134B, Other},    {0x1FBF9, Number},
  };
  for (const Case& c : cases) EXPECT_EQ(kind_of(c.c), c.kind) << std::hex << +c.c;
}

/// The search relies on it. How many there are is known from the categories.
TEST(Unicode, RangesAscend) {
  const auto count = [](std::span<const CodePointRange> ranges) {
    char32_t before = 0;
    int out = 0;
    for (const CodePointRange& range : ranges) {
      EXPECT_GT(range.first, before + 1);
      EXPECT_GE(range.last, range.first);
      before = range.last;
      out += static_cast<int>(range.last - range.first) + 1;
    }
    return out;
  };
  EXPECT_EQ(count(letter_ranges()), 131'756);
  EXPECT_EQ(count(number_ranges()), 1'791);
}

}  // namespace
}  // namespace tessera
