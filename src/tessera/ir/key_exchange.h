#pragma once
/// How attention gets at the keys and values of tokens that other ranks have (context parallelism).

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class KeyExchange : std::uint8_t {
  Ring,    // block by block, while it computes: passes/ring_attention.h
  Gather,  // all of them at once
};

/// In the order of the enumerators, as flags and texts spell them, and Megatron-LM does.
inline constexpr std::array<std::string_view, 2> kKeyExchanges = {"p2p", "all_gather"};
constexpr std::string_view to_text(KeyExchange exchange) {
  return kKeyExchanges[static_cast<std::size_t>(exchange)];
}

}  // namespace tessera
