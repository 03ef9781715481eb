// Known answers of Philox-4x32-10 (Random123's kat_vectors), and how elements take their bits.
#include "tessera/base/philox.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace tessera {
namespace {

constexpr std::uint64_t kOnes = std::numeric_limits<std::uint64_t>::max();

TEST(Philox, KnownAnswers) {
  static_assert(philox(0, 0, 0) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  static_assert(philox(kOnes, kOnes, kOnes) ==
                PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // Digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AnElementTakesItsWordOfItsBlock) {
  for (std::uint64_t index = 0; index < 9; ++index) {
    EXPECT_EQ(philox_bits(7, index, 3), philox(7, index / 4, 3)[index % 4]);
  }
}

TEST(Philox, UnitFloatsAreBelowOneAndExact) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_EQ(unit_float(255), 0.0f);
  EXPECT_EQ(unit_float(256), 0x1p-24f);
  EXPECT_EQ(unit_float(0x80000000), 0.5f);
  EXPECT_EQ(unit_float(0xFFFFFFFF), 1.0f - 0x1p-24f);
}

}  // namespace
}  // namespace tessera
