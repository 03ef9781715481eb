#pragma once
/// Functions as polynomials, one for each of equal parts of their range. One instruction of AVX-512
/// takes sixteen numbers from a table of sixteen, so coefficients that differ from part to part
/// cost little, and with them a low degree is enough.

namespace tessera::cpu {

/// A function f for which f(x) + f(-x) = 1, and which is taken for 0 far on the left: f(-t) for t
/// of 0 and more. Part j is what lies around j * width; there f(-t) is a polynomial in t - j *
/// width, coefficient[i] that of its i-th power. All of the last part is 0.
struct Pieces {
  static constexpr int kParts = 16, kDegree = 6;
  float width;
  alignas(64) float coefficient[kDegree + 1][kParts];
};

/// By what x is multiplied in gelu(x), and the derivative of gelu, both for the form with erf and
/// for that with tanh. Both are within 1 unit in the last place of 1. On the left, where a gate is
/// small, it is within 2 units of its own last place down to -3, and 120 down to -5.
struct GeluPieces {
  Pieces gate, slope;
};
const GeluPieces& gelu_erf_pieces();
const GeluPieces& gelu_tanh_pieces();

}  // namespace tessera::cpu
