#include "tessera/gemm/panels.h"

#include <cmath>

#include "device/product_trial.h"
#include "device/vector_test.h"

namespace tessera {
namespace {

using cpu::PanelGemm;
using PanelTrial = testing::ProductTrial<PanelGemm>;

/// Tests the loops for AVX2 on machines with AVX-512 too.
class Panels : public ::testing::Test {
  const testing::Without without_{testing::kAvx512};
};

/// A sum of k terms rounds k times, each time by 2^-24 of a partial sum at most. Roundings are of
/// both signs: far fewer than all of them add up.
TEST_F(Panels, EqualTheSumWithinTheRoundingOfF32) {
  const testing::ProductSize sizes[] = {{1, 1, 1},     {6, 16, 1},     {5, 15, 7},    {7, 17, 9},
                                        {12, 32, 256}, {13, 33, 257},  {96, 16, 40},  {97, 48, 300},
                                        {101, 65, 77}, {191, 100, 33}, {48, 700, 260}};
  testing::expect_sums<PanelGemm>(sizes, 8, [](std::int64_t k, double, double magnitudes) {
    return std::ldexp((4 + std::sqrt(static_cast<double>(k))) * magnitudes, -24);
  });
}

TEST_F(Panels, LeaveTheGapsBetweenRowsAlone) { testing::expect_gaps_left_alone<PanelGemm>(); }

TEST_F(Panels, WhatIsNotANumberStaysInItsRowOrColumn) {
  PanelTrial trial(50, 41, 300, testing::kTurnA);
  trial.a.at(7, 270) = NAN;
  trial.b.at(31, 40) = INFINITY;
  trial.run();
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t j = 0; j < 41; ++j)
      EXPECT_EQ(std::isfinite(trial.c.at(i, j)), i != 7 && j != 40) << i << ", " << j;
  }
}

TEST_F(Panels, APartOfAProductHasTheBitsOfTheWhole) {
  for (const int way : {testing::kTurnA, testing::kTurnB})
    testing::expect_bits_of_the_whole(PanelTrial(150, 340, 600, way));
}

TEST_F(Panels, TheSameBitsOnAnyThreads) {
  const CpuChoices machine = machine_choices();
  if (machine.isa != Isa::Avx2) GTEST_SKIP() << "chosen on processors with AVX2 alone";
  for (const testing::CutMatmul& c : testing::kCutMatmuls) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(testing::expect_same_on_any_threads(c, machine, DType::F32, DType::F32),
              "hwy:matmul");
  }
}

}  // namespace
}  // namespace tessera
