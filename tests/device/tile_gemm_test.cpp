/// Products on packed tiles. These tests are two programs: they run on this processor's units, and
/// on units of plain loops (emulated/), so that every processor tests them all.

#include "tessera/gemm/tile_gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "device/product_trial.h"
#include "tessera/base/philox.h"
#include "tessera/gemm/dot_gemm.h"

namespace tessera {
namespace {

using cpu::AmxGemm;
using cpu::Bf16;
using cpu::TileUnit;
using testing::ProductMatrix;
using testing::ProductTrial;

class Amx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::tile_unit_usable(TileUnit::Amx))
      GTEST_SKIP() << "needs a processor with AMX and bf16";
  }
};

using Trial = ProductTrial<AmxGemm>;

/// Of every 32 terms six sums are made, and each rounds by 2^-24 of a partial sum at most; that is
/// far below the sum of all magnitudes but for the first ones. Without one of the six products of
/// parts the error is several times this.
TEST_F(Amx, EqualsTheSumWithinTheRoundingOfF32) {
  const testing::ProductSize sizes[] = {
      {1, 1, 1},    {16, 16, 32},  {32, 32, 32},   {17, 31, 33},  {33, 16, 31},  {5, 100, 70},
      {100, 5, 16}, {48, 48, 127}, {130, 67, 129}, {40, 33, 300}, {260, 20, 40}, {20, 3100, 129}};
  testing::expect_sums<AmxGemm>(sizes, 8, [](std::int64_t k, double, double magnitudes) {
    const double roundings = 4 + static_cast<double>((k + 31) / 32);
    return roundings * std::ldexp(magnitudes, -24);
  });
}

/// Times one, plus nothing: all 24 bits come through, at every size of number and on either side.
TEST_F(Amx, PartsMakeUpTheWholeNumber) {
  const std::int64_t n = 256;
  const auto one = [](std::int64_t i, std::int64_t j) { return i == j ? 1.0F : 0.0F; };
  const auto number = [](std::int64_t i, std::int64_t j) {
    if (j == 0 && i < 4)
      return std::array{0x1.fffffep100F, 0x1.feffffp100F, 0x1.00ffffp0F,
                        -0x1.017fffp0F}[static_cast<std::size_t>(i)];
    const std::uint32_t bits = philox_bits(7, static_cast<std::uint64_t>(i * n + j), 0);
    const float one_to_two = 1 + static_cast<float>(bits >> 9) * 0x1p-23F;
    const int exponent = static_cast<int>((i + j) % 227) - 102;  // 2^-102 to 2^124
    return std::ldexp((bits & 1) != 0 ? -one_to_two : one_to_two, exponent);
  };
  for (int way = 0; way < 8; ++way) {
    Trial trial(n, n, n, way % 4);
    const bool numbers_in_a = way >= 4;
    trial.a.set(
        [&](std::int64_t i, std::int64_t j) { return numbers_in_a ? number(i, j) : one(i, j); });
    trial.b.set(
        [&](std::int64_t i, std::int64_t j) { return numbers_in_a ? one(i, j) : number(i, j); });
    trial.run();
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) ASSERT_EQ(trial.c.at(i, j), number(i, j)) << way;
    }
  }
}

TEST_F(Amx, WhatIsNotANumberStaysInItsRowOrColumn) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float odd[] = {NAN,
                       -NAN,
                       kInf,
                       -kInf,
                       std::numeric_limits<float>::max(),
                       std::bit_cast<float>(0x7fffffffU),
                       std::bit_cast<float>(0xffffffffU)};
  for (const bool in_a : {false, true}) {
    Trial trial(40, 40, 50, 0);
    for (std::int64_t i = 0; i < std::ssize(odd); ++i)
      (in_a ? trial.a.at(3 * i, 2 * i + 30) : trial.b.at(2 * i + 30, 3 * i)) = odd[i];
    trial.run();
    for (std::int64_t i = 0; i < 40; ++i) {
      for (std::int64_t j = 0; j < 40; ++j) {
        const std::int64_t at = in_a ? i : j;
        EXPECT_EQ(std::isnan(trial.c.at(i, j)), at % 3 == 0 && at / 3 < std::ssize(odd)) << at;
      }
    }
  }
}

TEST_F(Amx, WhatIsBelowTheSmallestNormalNumberCountsAsZero) {
  Trial trial(16, 16, 16, testing::kAdd);
  trial.a.set([](auto...) { return 0x1p-127F; });
  trial.b.set([](auto...) { return 0x1p20F; });
  trial.c.set([](auto...) { return 0x1p-140F; });
  trial.run();
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 16; ++j) EXPECT_EQ(trial.c.at(i, j), 0);
  }
}

TEST_F(Amx, APartOfAProductHasTheBitsOfTheWhole) {
  testing::expect_bits_of_the_whole(Trial(150, 140, 200, testing::kTurnB));
}

template <typename Product>
class TilesOfBf16 : public ::testing::Test {
 protected:
  static constexpr bool kRounds = std::is_same_v<typename Product::Out, Bf16>;
  static constexpr int kWays = kRounds ? 4 : 8;  // those from 4 on are added to what lies there

  void SetUp() override {
    if (!cpu::tile_unit_usable(kUnit)) GTEST_SKIP() << "needs " << Product::kMatmulName;
  }

 private:
  static constexpr TileUnit kUnit =
      Product::kMatmulName == AmxGemm::kMatmulName ? TileUnit::Amx : TileUnit::Dots;
};
using ProductsOfBf16 = ::testing::Types<cpu::TileGemm<Bf16, float>, cpu::TileGemm<Bf16, Bf16>,
                                        cpu::DotGemm<float>, cpu::DotGemm<Bf16>>;
TYPED_TEST_SUITE(TilesOfBf16, ProductsOfBf16);

/// Edges of tiles and panels, odd contractions; then contractions of several passes, more rows than
/// are finished at a time, and more columns than lie packed.
const testing::ProductSize kTileSizes[] = {
    {1, 1, 1},     {9, 10, 60},    {16, 16, 32},     {17, 31, 33},    {33, 16, 31},
    {5, 100, 70},  {100, 5, 16},   {48, 48, 127},    {130, 67, 129},  {40, 33, 300},
    {260, 20, 40}, {35, 18, 1025}, {1030, 10, 1100}, {20, 700, 1100}, {9, 1900, 1100}};

/// Sums of small whole numbers are exact, and large enough that rounding to bf16 meets ties.
TYPED_TEST(TilesOfBf16, AddEveryTermOnceAndRoundOnce) {
  const auto whole = [](std::uint64_t seed) {
    return [seed](std::int64_t i, std::int64_t j) {
      const auto at = static_cast<std::uint64_t>(i * 5000 + j);
      return static_cast<float>(philox_bits(seed, at, 0) % 12) - 3;
    };
  };
  testing::in_ways<TypeParam>(kTileSizes, this->kWays, [&](auto& trial) {
    trial.a.set(whole(1)), trial.b.set(whole(2)), trial.c.set(whole(3));
    ProductMatrix<typename TypeParam::Out> before(trial.shape.m, trial.shape.n, trial.shape.c_row,
                                                  1);
    before.set(whole(3));
    trial.run();
    std::int64_t wrong = 0;
    each_element(trial, before, [&](double sum, double, double result) {
      const auto exact = static_cast<float>(sum);
      wrong += result != (this->kRounds ? from_bf16(to_bf16(exact)) : exact);
    });
    EXPECT_EQ(wrong, 0);
  });
}

/// A sum of k terms rounds at most once per term, by 2^-24 of a partial sum; roundings are of both
/// signs, so that far fewer than all of them add up. A bf16 has 8 bits: half of the last is 2^-8.
TYPED_TEST(TilesOfBf16, EqualTheSumWithinRoundings) {
  const testing::ProductSize sizes[] = {{50, 70, 90}, {40, 20, 1300}};
  testing::expect_sums<TypeParam>(sizes, this->kWays,
                                  [&](std::int64_t k, double sum, double magnitudes) {
                                    const double roundings = 4 + std::sqrt(static_cast<double>(k));
                                    return std::ldexp(roundings * magnitudes, -24) +
                                           (this->kRounds ? std::ldexp(std::abs(sum), -8) : 0);
                                  });
}

TYPED_TEST(TilesOfBf16, LeaveTheGapsBetweenRowsAlone) {
  testing::expect_gaps_left_alone<TypeParam>();
}

TYPED_TEST(TilesOfBf16, WhatIsNotANumberStaysInItsRowOrColumn) {
  ProductTrial<TypeParam> trial(50, 41, 1030, testing::kTurnA);
  trial.a.at(7, 270) = to_bf16(NAN);
  trial.a.at(9, 1029) = 0x7F81;  // a NaN that rounding could make infinite
  trial.b.at(1027, 40) = to_bf16(INFINITY);
  trial.run();
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t j = 0; j < 41; ++j) {
      const float x = trial.c.number(i, j);
      const bool of_nan = i == 7 || i == 9;
      EXPECT_EQ(std::isfinite(x), !of_nan && j != 40) << i << ", " << j;
      EXPECT_EQ(std::isnan(x), of_nan || (j == 40 && trial.a.number(i, 1027) == 0));
    }
  }
}

TYPED_TEST(TilesOfBf16, TakeWhatIsBelowTheSmallestNormalNumberForZero) {
  for (const auto& [x, y] : {std::pair{0x1p-127F, 0x1p20F}, {0x1p-70F, 0x1p-60F}}) {
    ProductTrial<TypeParam> trial(16, 16, 16, 0);
    trial.a.set([&](auto...) { return x; });
    trial.b.set([&](auto...) { return y; });
    trial.run();
    for (std::int64_t i = 0; i < 16; ++i) {
      for (std::int64_t j = 0; j < 16; ++j) EXPECT_EQ(trial.c.number(i, j), 0) << x;
    }
  }
}

TYPED_TEST(TilesOfBf16, APartOfAProductHasTheBitsOfTheWhole) {
  testing::expect_bits_of_the_whole(ProductTrial<TypeParam>(150, 140, 1200, testing::kTurnB));
}

}  // namespace
}  // namespace tessera
