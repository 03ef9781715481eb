#include "tessera/device/cpu/vector_pieces.h"
#include "worst.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace tessera {
namespace {

constexpr double kUlpOfOne = 0x1p-23;

/// f(x), computed as vectors do.
template <class P>
double value(const P& pieces, float x) {
  const float t = std::min(std::abs(x), (P::kParts - 1) * pieces.width);
  const auto part = static_cast<int>(std::lround(t / pieces.width));
  const float r = std::fma(-static_cast<float>(part), pieces.width, t);
  float left = 0;
  for (int i = P::kDegree; i >= 0; --i) left = std::fma(left, r, pieces.coefficient[i][part]);
  return x > 0 ? 1.0F - left : left;
}

using Function = std::function<double(double)>;

/// By differences: exact enough for numbers of f32, and not by the formulas that made the tables.
Function slope_of(const Function& gate) {
  return [gate](double x) {
    const auto f = [&](double at) { return at * gate(at); };
    const double h = 1e-3;
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
  };
}

double erf_gate(double x) { return (1 + std::erf(x / std::numbers::sqrt2)) / 2; }
double tanh_gate(double x) {
  return (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))) / 2;
}

/// The largest error on (from, to], in ulp of 1, and of the result.
struct Errors {
  double of_one = 0, of_result = 0;
};
template <class P>
Errors errors(const P& pieces, const Function& f, float from, float to) {
  Errors out;
  for (float x = to; x > from; x -= 1.0F / 1024) {
    const double truth = f(x), error = std::abs(value(pieces, x) - truth);
    out.of_one = worse_of(out.of_one, error / kUlpOfOne);
    out.of_result = worse_of(out.of_result, error / std::abs(truth) / kUlpOfOne);
  }
  return out;
}

template <class P>
class GeluPieces : public ::testing::Test {};
using PiecesOfEachVector = ::testing::Types<cpu::EightPieces, cpu::SixteenPieces>;
TYPED_TEST_SUITE(GeluPieces, PiecesOfEachVector);

TYPED_TEST(GeluPieces, AreCloseToTheFormulas) {
  const struct {
    const cpu::GeluPieces<TypeParam>& pieces;
    Function gate;
  } forms[] = {{cpu::gelu_erf_pieces<TypeParam>(), erf_gate},
               {cpu::gelu_tanh_pieces<TypeParam>(), tanh_gate}};
  const bool eight = TypeParam::kParts == 8;
  for (const auto& [pieces, gate] : forms) {
    EXPECT_LE(errors(pieces.gate, gate, -200, 200).of_one, 1);
    EXPECT_LE(errors(pieces.slope, slope_of(gate), -200, 200).of_one, 1);
    EXPECT_LE(errors(pieces.gate, gate, -3, 0).of_result, eight ? 4 : 2);
    EXPECT_LE(errors(pieces.gate, gate, -5, -3).of_result, eight ? 400 : 120);
  }
}

TYPED_TEST(GeluPieces, AreConstantFarFromZero) {
  for (const auto* pieces :
       {&cpu::gelu_erf_pieces<TypeParam>(), &cpu::gelu_tanh_pieces<TypeParam>()}) {
    for (const TypeParam* f : {&pieces->gate, &pieces->slope}) {
      EXPECT_EQ(value(*f, -6.1F), 0);
      EXPECT_EQ(value(*f, 6.1F), 1);
      EXPECT_EQ(value(*f, -INFINITY), 0);
      EXPECT_EQ(value(*f, INFINITY), 1);
    }
  }
}

}  // namespace
}  // namespace tessera
