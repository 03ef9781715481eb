#pragma once
/// Reductions: how values that several ranks or micro-batches hold combine. Their names, identities
/// and arithmetic; kernels and placements switch on the enumeration themselves.

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace tessera {

/// One: each element is on one rank, and the others hold zeros: a sum of which nothing has to be
/// finished before it is read.
enum class Monoid : std::uint8_t { Sum, Max, Min, One };

/// How ranks combine such a value: that of One is a sum.
constexpr Monoid combining(Monoid monoid) { return monoid == Monoid::One ? Monoid::Sum : monoid; }

/// "sum", "max", "min", "one".
std::string_view to_text(Monoid monoid);
/// Reads what to_text writes. Errors: any other name.
Monoid parse_monoid(std::string_view name);

/// The value that changes nothing when it is combined with another of its type.
template <typename T>
constexpr T identity_of(Monoid monoid) {
  using Limits = std::numeric_limits<T>;
  if (combining(monoid) == Monoid::Sum) return T{};
  if constexpr (Limits::has_infinity) {
    return monoid == Monoid::Max ? -Limits::infinity() : Limits::infinity();
  } else {
    return monoid == Monoid::Max ? Limits::lowest() : Limits::max();
  }
}

/// One value of two. A NaN wins over any number; sums of integers wrap around.
template <typename T>
constexpr T combine(Monoid monoid, T a, T b) {
  switch (monoid) {
    case Monoid::Max: return b > a || b != b ? b : a;
    case Monoid::Min: return b < a || b != b ? b : a;
    default: break;
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
  } else {
    return static_cast<T>(a + b);
  }
}

}  // namespace tessera
