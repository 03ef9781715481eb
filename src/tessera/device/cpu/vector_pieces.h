#pragma once
/// Functions as polynomials, one for each of equal parts of their range. One instruction takes as
/// many numbers from a table as a vector has, so coefficients that differ from part to part cost
/// little, and with them a low degree is enough.

namespace tessera::cpu {

/// A function f for which f(x) + f(-x) = 1, and which is taken for 0 far on the left: f(-t) for t
/// of 0 and more. Part j is what lies around j * width; there f(-t) is a polynomial in t - j *
/// width, coefficient[i] that of its i-th power. All of the last part is 0.
template <int parts, int degree>
struct Pieces {
  static constexpr int kParts = parts, kDegree = degree;
  float width;
  alignas(64) float coefficient[kDegree + 1][kParts];
};
using EightPieces = Pieces<8, 8>;
using SixteenPieces = Pieces<16, 6>;

/// By what x is multiplied in gelu(x), and the derivative of gelu, both for the form with erf and
/// for that with tanh. Both are within 1 unit in the last place of 1. On the left, where a gate is
/// small, its relative error is at most 2 x 2^-23 down to -3 and 120 x 2^-23 down to -5; of eight
/// pieces 4 and 400.
template <class P>
struct GeluPieces {
  P gate, slope;
};
template <class P>
const GeluPieces<P>& gelu_erf_pieces();
template <class P>
const GeluPieces<P>& gelu_tanh_pieces();

}  // namespace tessera::cpu
