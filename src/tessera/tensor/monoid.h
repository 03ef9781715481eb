#pragma once
/// Reductions: how values that several ranks or micro-batches hold combine. Everything that depends
/// on which one it is stands here.

#include <cstdint>
#include <limits>
#include <string_view>

namespace tessera {

enum class Monoid : std::uint8_t { Sum, Max, Min };

/// "sum", "max", "min".
std::string_view to_text(Monoid monoid);
/// Reads what to_text writes. Errors: any other name.
Monoid parse_monoid(std::string_view name);

/// The value that changes nothing when it is combined with another of its type.
template <typename T>
constexpr T identity_of(Monoid monoid) {
  using Limits = std::numeric_limits<T>;
  if (monoid == Monoid::Sum) return T{};
  if constexpr (Limits::has_infinity) {
    return monoid == Monoid::Max ? -Limits::infinity() : Limits::infinity();
  } else {
    return monoid == Monoid::Max ? Limits::lowest() : Limits::max();
  }
}

/// One value of two. A NaN wins over any number.
template <typename T>
constexpr T combine(Monoid monoid, T a, T b) {
  switch (monoid) {
    case Monoid::Max: return b > a || b != b ? b : a;
    case Monoid::Min: return b < a || b != b ? b : a;
    default: return static_cast<T>(a + b);
  }
}

}  // namespace tessera
