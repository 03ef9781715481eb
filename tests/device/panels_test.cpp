#include "tessera/device/cpu/panels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "device/product_trial.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

using cpu::PanelGemm;
using PanelTrial = testing::ProductTrial<PanelGemm>;
using testing::ProductMatrix;

/// A sum of k terms rounds k times, each time by 2^-24 of a partial sum at most.
TEST(Panels, EqualTheSumWithinTheRoundingOfF32) {
  const std::int64_t sizes[][3] = {{1, 1, 1},     {6, 16, 1},     {5, 15, 7},    {7, 17, 9},
                                   {12, 32, 256}, {13, 33, 257},  {96, 16, 40},  {97, 48, 300},
                                   {101, 65, 77}, {191, 100, 33}, {48, 700, 260}};
  for (const auto& [m, n, k] : sizes) {
    for (int way = 0; way < 8; ++way) {
      SCOPED_TRACE(text(m, " x ", n, " x ", k, ", way ", way));
      PanelTrial trial(m, n, k, (way & 1) != 0, (way & 2) != 0, (way & 4) != 0);
      ProductMatrix before(m, n, trial.shape.c_row, 1);
      before.fill(3);
      trial.run();
      double worst = 0;
      each_element(trial, before, [&](double sum, double magnitudes, double result) {
        // Roundings are of both signs: far fewer than all of them add up.
        const double bound = std::ldexp((4 + std::sqrt(static_cast<double>(k))) * magnitudes, -24);
        worst = std::max(worst, std::abs(result - sum) / bound);
      });
      EXPECT_LE(worst, 1);
    }
  }
}

TEST(Panels, LeaveTheGapsBetweenRowsAlone) {
  PanelTrial trial(20, 37, 30, false, false, false);
  trial.run();
  for (std::int64_t i = 0; i + 1 < 20; ++i) {
    for (std::int64_t j = 37; j < trial.shape.c_row; ++j)
      EXPECT_TRUE(std::isnan(trial.c.at(i, j))) << i << ", " << j;
  }
}

TEST(Panels, WhatIsNotANumberStaysInItsRowOrColumn) {
  PanelTrial trial(50, 41, 300, true, false, false);
  trial.a.at(7, 270) = NAN;
  trial.b.at(31, 40) = INFINITY;
  trial.run();
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t j = 0; j < 41; ++j)
      EXPECT_EQ(std::isfinite(trial.c.at(i, j)), i != 7 && j != 40) << i << ", " << j;
  }
}

TEST(Panels, APartOfAProductHasTheBitsOfTheWhole) {
  const std::int64_t m = 150, n = 340, k = 600;
  for (const bool turned : {false, true}) {
    PanelTrial whole(m, n, k, turned, !turned, false);
    whole.run();
    for (const auto& [top, left, rows, cols] :
         {std::array<std::int64_t, 4>{0, 0, 1, 340}, {32, 16, 64, 48}, {17, 90, 33, 50}}) {
      cpu::GemmShape shape = whole.shape;
      shape.m = rows, shape.n = cols, shape.c_row = cols;
      const PanelGemm gemm(shape);
      testing::detail::Guarded scratch(gemm.scratch_bytes());
      std::vector<float> part(static_cast<std::size_t>(rows * cols));
      gemm.execute(&whole.a.at(top, 0), &whole.b.at(0, left), part.data(),
                   reinterpret_cast<float*>(scratch.data()));
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j)
          ASSERT_EQ(part[static_cast<std::size_t>(i * cols + j)], whole.c.at(top + i, left + j));
      }
    }
  }
}

/// With the products of a layer of the nanoGPT recipe, a head of 65 columns, and loops of products.
TEST(Panels, TheSameBitsOnAnyThreads) {
  const struct {
    const char *name, *rule;
    Shape a, b, c;
  } cases[] = {
      {"gradient of weights", "b s n, b s k -> n k", {3, 64, 96}, {3, 64, 130}, {96, 130}},
      {"forward", "b s k, n k -> b s n", {3, 70, 96}, {65, 96}, {3, 70, 65}},
      {"gradient of the input", "b s n, n k -> b s k", {3, 70, 65}, {65, 96}, {3, 70, 96}},
      {"operands change roles", "m k, k n -> n m", {100, 64}, {64, 50}, {50, 100}},
      {"batches", "b m k, b k n -> b m n", {5, 60, 36}, {5, 36, 50}, {5, 60, 50}},
      {"a sum of parts", "m k l, l k n -> m n", {60, 6, 50}, {50, 6, 80}, {60, 80}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, c.a, 1),
                                         testing::random_tensor(DType::F32, c.b, 2)};
    std::vector<HostTensor> outs;
    for (const int threads : {1, 2, 3, 5}) {
      const std::unique_ptr<Device> device = make_cpu_device({.threads = threads});
      testing::KernelRun run = testing::run_kernel(*device, kMatmul, {std::string(c.rule)}, ins,
                                                   {{DType::F32, c.c, {}}});
      if (machine_choices().isa != Isa::Avx2)
        GTEST_SKIP() << "chosen on processors with AVX2 alone";
      EXPECT_EQ(run.kernel, "hwy:matmul");
      outs.push_back(std::move(run.outs[0]));
      EXPECT_TRUE(std::ranges::equal(outs.back().bytes(), outs.front().bytes())) << threads;
    }
  }
}

}  // namespace
}  // namespace tessera
