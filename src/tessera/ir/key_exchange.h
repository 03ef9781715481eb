#pragma once
/// How attention gets at the keys and values of tokens that other ranks have (context parallelism).

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class KeyExchange : std::uint8_t {
  Ring,    // block by block, while it computes: passes/ring_attention.h
  Gather,  // all of them at once
  Heads,   // of some heads, for which ranks exchange tokens before attention, and back behind it
};

/// Tokens of a half block, below which a ring leaves blocks whole, though some ranks have less to do.
inline constexpr std::int64_t kLeastHalfBlock = 128;

/// In the order of the enumerators, as flags and texts spell them, and Megatron-LM does.
inline constexpr std::array<std::string_view, 3> kKeyExchanges = {"p2p", "all_gather", "a2a"};
/// What flags take: one of them, or none, that by which less is sent.
inline constexpr std::array<std::string_view, 4> kKeyExchangeChoices = {
    "auto", kKeyExchanges[0], kKeyExchanges[1], kKeyExchanges[2]};
constexpr std::string_view to_text(KeyExchange exchange) {
  return kKeyExchanges[static_cast<std::size_t>(exchange)];
}

}  // namespace tessera
