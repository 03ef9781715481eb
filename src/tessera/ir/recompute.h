#pragma once
/// What backward computes again, in place of keeping it from forward on.

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class Recompute : std::uint8_t {
  None,
  Selective,  // all but products with weights: norms, activations, dropout, attention
  Full,       // everything
};

/// In the order of the enumerators, as flags and texts spell them.
inline constexpr std::array<std::string_view, 3> kRecomputes = {"none", "selective", "full"};
constexpr std::string_view to_text(Recompute what) {
  return kRecomputes[static_cast<std::size_t>(what)];
}

}  // namespace tessera
