#pragma once
/// Tables of constants, one behind the other.

#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace tessera {

template <typename Table>
struct TableSize;
template <typename T, std::size_t N>
struct TableSize<T[N]> : std::integral_constant<std::size_t, N> {};
template <typename T, std::size_t N>
struct TableSize<std::array<T, N>> : std::integral_constant<std::size_t, N> {};

/// Their elements, in order, as an array that a span can be of.
template <typename First, typename... More>
constexpr auto joined(const First& first, const More&... more) {
  using Element = std::remove_cvref_t<decltype(*std::begin(first))>;
  std::array<Element, (TableSize<std::remove_const_t<First>>::value + ... +
                       TableSize<std::remove_const_t<More>>::value)>
      out = {};
  std::size_t at = 0;
  const auto take = [&](const auto& table) {
    for (const Element& element : table) out[at++] = element;
  };
  take(first);
  (take(more), ...);
  return out;
}

}  // namespace tessera
