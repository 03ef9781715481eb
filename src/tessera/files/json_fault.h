#pragma once
/// Why bytes are no JSON, for messages.

#include <string>
#include <string_view>

namespace tessera {

/// "this is no JSON; give ...", where `instead` is what to give. Where the reason is an escape that
/// is half of a character, as \ud83d alone, which other programs write for a text that was cut
/// within an emoji: that, and at which byte, from 1.
std::string json_fault(std::string_view bytes, std::string_view instead);

}  // namespace tessera
