#pragma once
/// For how long a rank keeps what it has gathered of a parameter that is stored in parts (ZeRO-3),
/// or copied of one that lies on the host.

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class GatherScope : std::uint8_t {
  Use,  // for one op that reads it
  /// For forward, and for backward, of the block it belongs to: of a micro-batch, from the first op
  /// that reads it to the last. What several blocks read, a table of embeddings that is the head
  /// too, is kept between them.
  Block,
  Step,  // from before the first micro-batch until after the last
};

/// In the order of the enumerators, as flags and texts spell them.
inline constexpr std::array<std::string_view, 3> kGatherScopes = {"use", "block", "step"};
constexpr std::string_view to_text(GatherScope scope) {
  return kGatherScopes[static_cast<std::size_t>(scope)];
}

}  // namespace tessera
