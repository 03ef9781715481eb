#pragma once
/// What `div` computes of two numbers, for the reference loops and the kernels of devices.

#include <type_traits>

namespace tessera {

/// Integers are rounded toward 0. Every pair of them has a quotient, as a processor stops a program
/// that divides otherwise: x / 0 is 0, and the least number / -1 is itself.
template <typename T>
T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(a));
  }
  return a / b;
}

}  // namespace tessera
