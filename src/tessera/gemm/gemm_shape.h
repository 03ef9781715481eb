#pragma once
/// One matrix product on matrices with strides.

#include <cstdint>

namespace tessera::cpu {

using Bf16 = std::uint16_t;  // its bits

/// C [m, n] = A [m, k] B [k, n], or C += A B. Strides in elements; of a matrix's two strides one
/// is 1.
struct GemmShape {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_row = 1, a_col = 1;
  std::int64_t b_row = 1, b_col = 1;
  std::int64_t c_row = 1;  // columns of C are adjacent
  bool accumulate = false;
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

}  // namespace tessera::cpu
