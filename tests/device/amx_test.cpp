#include "tessera/device/cpu/amx.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/kernel_test.h"
#include "tessera/base/philox.h"
#include "tessera/ops/matmul.h"

namespace tessera {
namespace {

using cpu::AmxGemm;
using cpu::GemmShape;
using testing::detail::Guarded;

class Amx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::amx_usable()) GTEST_SKIP() << "needs a processor with AMX and bf16";
  }
};

/// A matrix of floats that lies at strides, with a pattern that reads as NaN in the gaps and
/// behind.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col)
      : rows_(rows),
        cols_(cols),
        row_(row),
        col_(col),
        bytes_(((rows - 1) * row + (cols - 1) * col + 1) * 4) {}
  float* data() { return reinterpret_cast<float*>(bytes_.data()); }
  float& at(std::int64_t i, std::int64_t j) { return data()[i * row_ + j * col_]; }
  void fill(std::uint64_t seed) {
    const HostTensor numbers = testing::random_tensor(DType::F32, {rows_, cols_}, seed);
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < cols_; ++j)
        at(i, j) = static_cast<float>(numbers.at(i * cols_ + j));
    }
  }
  bool intact() const { return bytes_.intact(); }

 private:
  std::int64_t rows_, cols_, row_, col_;
  Guarded bytes_;
};

/// A product and its operands: A and B dense or turned, each with a gap between its rows.
struct Trial {
  GemmShape shape;
  Matrix a, b, c;

  Trial(std::int64_t m, std::int64_t n, std::int64_t k, bool turn_a, bool turn_b, bool accumulate)
      : shape{m,
              n,
              k,
              turn_a ? 1 : k + 3,
              turn_a ? m + 5 : 1,
              turn_b ? 1 : n + 7,
              turn_b ? k + 2 : 1,
              n + 9,
              accumulate},
        a(m, k, shape.a_row, shape.a_col),
        b(k, n, shape.b_row, shape.b_col),
        c(m, n, shape.c_row, 1) {
    a.fill(1), b.fill(2), c.fill(3);
  }

  void run() {
    const AmxGemm gemm(shape);
    Guarded scratch(gemm.scratch_bytes());
    gemm.execute(a.data(), b.data(), c.data(), scratch.data());
    EXPECT_TRUE(scratch.intact() && a.intact() && b.intact() && c.intact());
  }
};

/// Every addition rounds a partial sum by 2^-24 of it at most, which is at most the sum of all
/// magnitudes: six additions per 32 terms, some inside the unit, and those of products left out.
double bound(std::int64_t k, double magnitudes) {
  const double additions = 6.0 * static_cast<double>((k + 31) / 32) + 24;
  return additions * std::ldexp(magnitudes, -24);
}

TEST_F(Amx, EqualsTheSumWithinTheRoundingOfF32) {
  const std::int64_t sizes[][3] = {{1, 1, 1},      {16, 16, 32},  {32, 32, 32},  {17, 31, 33},
                                   {33, 16, 31},   {5, 100, 70},  {100, 5, 16},  {48, 48, 127},
                                   {130, 67, 129}, {40, 33, 300}, {260, 20, 40}, {20, 3100, 129}};
  for (const auto& [m, n, k] : sizes) {
    for (int way = 0; way < 8; ++way) {
      SCOPED_TRACE(text(m, " x ", n, " x ", k, ", way ", way));
      Trial trial(m, n, k, (way & 1) != 0, (way & 2) != 0, (way & 4) != 0);
      Matrix before(m, n, trial.shape.c_row, 1);
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

/// Times one, plus nothing: all 24 bits come through, at every size of number.
TEST_F(Amx, PartsMakeUpTheWholeNumber) {
  const std::int64_t m = 512, k = 64;
  for (const bool turned : {false, true}) {
    Trial trial(m, k, k, turned, turned, false);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        const std::uint32_t bits = philox_bits(7, static_cast<std::uint64_t>(i * k + j), 0);
        const int exponent = static_cast<int>(i % 227) - 102;  // 2^-102 to 2^124
        const float one_to_two = 1 + static_cast<float>(bits >> 9) * 0x1p-23F;
        trial.a.at(i, j) = std::ldexp((bits & 1) != 0 ? -one_to_two : one_to_two, exponent);
      }
    }
    trial.a.at(3, 5) = 0x1.fffffep100F, trial.a.at(4, 5) = 0x1.feffffp100F;
    trial.a.at(5, 5) = 0x1.00ffffp0F, trial.a.at(6, 5) = -0x1.017fffp0F;
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = 0; j < k; ++j) trial.b.at(i, j) = i == j ? 1 : 0;
    }
    trial.run();
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < k; ++j) ASSERT_EQ(trial.c.at(i, j), trial.a.at(i, j)) << i;
    }
  }
}

TEST_F(Amx, WhatIsNotANumberStaysInItsRow) {
  Trial trial(40, 40, 50, false, false, false);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float odd[] = {NAN, -NAN, kInf, -kInf, std::numeric_limits<float>::max()};
  for (std::int64_t i = 0; i < std::ssize(odd); ++i) trial.a.at(3 * i, 2 * i + 30) = odd[i];
  std::uint32_t all_ones = 0x7fffffff;
  std::memcpy(&trial.a.at(20, 4), &all_ones, sizeof(all_ones));
  trial.a.at(30, 7) = 0x1p-140F;  // counts as zero
  trial.run();
  for (std::int64_t i = 0; i < 40; ++i) {
    const bool odd_row = i == 20 || (i % 3 == 0 && i < 15);
    for (std::int64_t j = 0; j < 40; ++j) EXPECT_EQ(std::isnan(trial.c.at(i, j)), odd_row) << i;
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
  const std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, {3, 50, 96}, 1),
                                       testing::random_tensor(DType::F32, {3, 50, 130}, 2)};
  const Attrs rule = {std::string("b s n, b s k -> n k")};
  std::vector<HostTensor> outs;
  for (const int threads : {1, 2, 3, 5}) {
    const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
    testing::KernelRun run =
        testing::run_kernel(*device, kMatmul, rule, ins, {{DType::F32, {96, 130}, {}}});
    EXPECT_EQ(run.kernel, "amx:matmul");
    outs.push_back(std::move(run.outs[0]));
    EXPECT_TRUE(std::ranges::equal(outs.back().bytes(), outs.front().bytes())) << threads;
  }
}

TEST_F(Amx, ADeviceCanBeToldToDoWithout) {
  const std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, {64, 64}, 1),
                                       testing::random_tensor(DType::F32, {64, 64}, 2)};
  const Attrs rule = {std::string("m k, k n -> m n")};
  for (const bool amx : {false, true}) {
    const std::unique_ptr<Device> device = make_cpu_device({1, -1, false, amx});
    EXPECT_EQ(testing::run_kernel(*device, kMatmul, rule, ins, {{DType::F32, {64, 64}, {}}}).kernel,
              amx ? "amx:matmul" : "onednn:matmul");
  }
}

}  // namespace
}  // namespace tessera
