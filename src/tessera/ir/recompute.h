#pragma once
/// What backward computes again, in place of keeping it from forward on. Each level computes more
/// again than the one before it, and keeps less as a rule.

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class Recompute : std::uint8_t {
  None,
  Elementwise,  // what takes one pass over values that are kept in any case: norms, activations,
                // dropout; not products and attention
  Selective,    // all but products with weights: attention too
  Full,         // everything
};

/// In the order of the enumerators, as flags and texts spell them.
inline constexpr std::array<std::string_view, 4> kRecomputes = {"none", "elementwise", "selective",
                                                                "full"};
constexpr std::string_view to_text(Recompute what) {
  return kRecomputes[static_cast<std::size_t>(what)];
}

}  // namespace tessera
