#include "tessera/device/cpu/vector_pieces.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace tessera::cpu {

namespace {

constexpr double kReach = 6;  // all four are smaller than 4e-8 before -6

/// Polynomials through the Chebyshev nodes of each part: their error is close to the smallest.
template <class P, class F>
P pieces_of(const F& f) {
  constexpr std::size_t kNodes = P::kDegree + 1, kUsed = P::kParts - 1;
  P out{};
  out.width = static_cast<float>(kReach / (kUsed - 0.5));
  for (std::size_t part = 0; part < kUsed; ++part) {
    std::array<double, kNodes> x{}, y{}, powers{};
    for (std::size_t i = 0; i < kNodes; ++i) {
      const double angle = std::numbers::pi * static_cast<double>(2 * i + 1) / (2 * kNodes);
      x[i] = std::cos(angle) * out.width / 2;
      y[i] = f(-(static_cast<double>(part) * out.width + x[i]));
    }
    // Newton's divided differences, and the product form that they are factors of, multiplied out.
    for (std::size_t k = 1; k < kNodes; ++k) {
      for (std::size_t i = kNodes - 1; i >= k; --i) y[i] = (y[i] - y[i - 1]) / (x[i] - x[i - k]);
    }
    for (std::size_t i = kNodes; i-- > 0;) {
      for (std::size_t k = kNodes - 1; k > 0; --k) powers[k] = powers[k - 1] - x[i] * powers[k];
      powers[0] = y[i] - x[i] * powers[0];
    }
    for (std::size_t i = 0; i < kNodes; ++i)
      out.coefficient[i][part] = static_cast<float>(powers[i]);
  }
  return out;
}

}  // namespace

template <class P>
const GeluPieces<P>& gelu_erf_pieces() {
  // The normal distribution function.
  const auto gate = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
  const auto slope = [&](double x) {
    const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return gate(x) + x * density;
  };
  static const GeluPieces<P> pieces{pieces_of<P>(gate), pieces_of<P>(slope)};
  return pieces;
}

template <class P>
const GeluPieces<P>& gelu_tanh_pieces() {
  // (1 + tanh u) / 2 is the sigmoid of 2u; u = sqrt(2 / pi) (x + 0.044715 x^3).
  constexpr double kFirst = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi,
                   kThird = kFirst * 0.044715;
  const auto gate = [](double x) { return 1 / (1 + std::exp(-x * (kFirst + kThird * x * x))); };
  const auto slope = [&](double x) {
    const double s = gate(x);
    return s + x * s * (1 - s) * (kFirst + 3 * kThird * x * x);
  };
  static const GeluPieces<P> pieces{pieces_of<P>(gate), pieces_of<P>(slope)};
  return pieces;
}

template const GeluPieces<EightPieces>& gelu_erf_pieces<EightPieces>();
template const GeluPieces<EightPieces>& gelu_tanh_pieces<EightPieces>();
template const GeluPieces<SixteenPieces>& gelu_erf_pieces<SixteenPieces>();
template const GeluPieces<SixteenPieces>& gelu_tanh_pieces<SixteenPieces>();

}  // namespace tessera::cpu
