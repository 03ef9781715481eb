#include "tessera/device/cpu/amx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "device/product_trial.h"
#include "tessera/base/philox.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

using cpu::AmxGemm;
using cpu::GemmShape;
using testing::ProductMatrix;
using testing::detail::Guarded;

class Amx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (machine_choices().isa < Isa::Amx) GTEST_SKIP() << "needs a processor with AMX and bf16";
  }
};

using Trial = testing::ProductTrial<AmxGemm>;

/// Of every 32 terms six sums are made, and each rounds by 2^-24 of a partial sum at most; that is
/// far below the sum of all magnitudes but for the first ones. Without one of the six products of
/// parts the error is several times this.
double bound(std::int64_t k, double magnitudes) {
  const double roundings = 4 + static_cast<double>((k + 31) / 32);
  return roundings * std::ldexp(magnitudes, -24);
}

TEST_F(Amx, EqualsTheSumWithinTheRoundingOfF32) {
  const std::int64_t sizes[][3] = {{1, 1, 1},      {16, 16, 32},  {32, 32, 32},  {17, 31, 33},
                                   {33, 16, 31},   {5, 100, 70},  {100, 5, 16},  {48, 48, 127},
                                   {130, 67, 129}, {40, 33, 300}, {260, 20, 40}, {20, 3100, 129}};
  for (const auto& [m, n, k] : sizes) {
    for (int way = 0; way < 8; ++way) {
      SCOPED_TRACE(text(m, " x ", n, " x ", k, ", way ", way));
      Trial trial(m, n, k, (way & 1) != 0, (way & 2) != 0, (way & 4) != 0);
      ProductMatrix before(m, n, trial.shape.c_row, 1);
      before.fill(3);
      trial.run();
      double worst = 0;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = trial.shape.accumulate ? before.at(i, j) : 0, magnitudes = std::abs(sum);
          for (std::int64_t l = 0; l < k; ++l) {
            const double term = double{trial.a.at(i, l)} * double{trial.b.at(l, j)};
            sum += term, magnitudes += std::abs(term);
          }
          worst = std::max(worst, std::abs(trial.c.at(i, j) - sum) / bound(k, magnitudes));
        }
      }
      EXPECT_LE(worst, 1);
    }
  }
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
    Trial trial(n, n, n, (way & 1) != 0, (way & 2) != 0, false);
    const bool numbers_in_a = (way & 4) != 0;
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
    Trial trial(40, 40, 50, false, false, false);
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
  Trial trial(16, 16, 16, false, false, true);
  trial.a.set([](auto...) { return 0x1p-127F; });
  trial.b.set([](auto...) { return 0x1p20F; });
  trial.c.set([](auto...) { return 0x1p-140F; });
  trial.run();
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 16; ++j) EXPECT_EQ(trial.c.at(i, j), 0);
  }
}

TEST_F(Amx, APartOfAProductHasTheBitsOfTheWhole) {
  const std::int64_t m = 150, n = 140, k = 200;
  Trial whole(m, n, k, false, true, false);
  whole.run();
  for (const auto& [top, left, rows, cols] :
       {std::array<std::int64_t, 4>{0, 0, 1, 140}, {32, 16, 64, 48}, {17, 90, 33, 50}}) {
    GemmShape shape = whole.shape;
    shape.m = rows, shape.n = cols, shape.c_row = cols;
    const AmxGemm gemm(shape);
    Guarded scratch(gemm.scratch_bytes());
    std::vector<float> part(static_cast<std::size_t>(rows * cols));
    gemm.execute(&whole.a.at(top, 0), &whole.b.at(0, left), part.data(), scratch.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(part[static_cast<std::size_t>(i * cols + j)], whole.c.at(top + i, left + j));
    }
  }
}

TEST_F(Amx, TheSameBitsOnAnyThreads) {
  const struct {
    const char *name, *rule;
    Shape a, b, c;
  } cases[] = {
      {"rows and contraction merge", "b s n, b s k -> n k", {3, 50, 96}, {3, 50, 130}, {96, 130}},
      {"cut by rows", "b s k, n k -> b s n", {3, 70, 96}, {40, 96}, {3, 70, 40}},
      {"operands change roles", "m k, k n -> n m", {100, 64}, {64, 50}, {50, 100}},
      {"batches", "b m k, b k n -> b m n", {5, 40, 36}, {5, 36, 50}, {5, 40, 50}},
      {"a sum of parts", "m k l, l k n -> m n", {40, 6, 50}, {50, 6, 80}, {40, 80}},
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
      EXPECT_EQ(run.kernel, "amx:matmul");
      outs.push_back(std::move(run.outs[0]));
      EXPECT_TRUE(std::ranges::equal(outs.back().bytes(), outs.front().bytes())) << threads;
    }
  }
}

/// A product for tiles reads weights as they lie; one that is too flat for tiles may pack.
TEST_F(Amx, PacksOnlyWhatItDoesNotCompute) {
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 1}),
                                plain = make_cpu_device(
                                    {.threads = 1,
                                     .choices = machine_choices().at_most(Isa::Avx512Bf16)});
  const Attrs rule = {std::string("m k, n k -> m n")};
  constexpr std::int64_t kUses = 1000;
  for (const std::int64_t m : {8, 64}) {
    const TensorType a{DType::F32, {m, 64}, {}}, b{DType::F32, {48, 64}, {}},
        c{DType::F32, {m, 48}, {}};
    const OpCall call(kMatmul, {&a, &b}, rule, {&c});
    const bool plain_packs = plain->wanted_layout(call, 1, kUses).has_value();
    EXPECT_EQ(device->wanted_layout(call, 1, kUses).has_value(), m == 8 && plain_packs);
  }
}

TEST_F(Amx, ADeviceCanBeToldToDoWithout) {
  const std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, {64, 64}, 1),
                                       testing::random_tensor(DType::F32, {64, 64}, 2)};
  const Attrs rule = {std::string("m k, k n -> m n")};
  for (const Isa isa : {Isa::Avx512, Isa::Avx512Bf16, Isa::Amx}) {
    const std::unique_ptr<Device> device =
        make_cpu_device({.threads = 1, .choices = machine_choices().at_most(isa)});
    EXPECT_EQ(device->isa(), to_text(isa));
    EXPECT_EQ(testing::run_kernel(*device, kMatmul, rule, ins, {{DType::F32, {64, 64}, {}}}).kernel,
              isa == Isa::Amx ? "amx:matmul" : "onednn:matmul");
  }
}

}  // namespace
}  // namespace tessera
