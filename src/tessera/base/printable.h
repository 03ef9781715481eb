#pragma once
/// Text from outside, for a terminal.

#include <string>
#include <string_view>

namespace tessera {

/// `text` with control characters but new lines and tabs as \x1b: a name in a file must not move
/// a cursor or change a colour.
std::string printable(std::string_view text);

}  // namespace tessera
