#include "tessera/base/printable.h"

namespace tessera {

namespace {

/// Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                             : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                             : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

/// U+0000 to U+001F but for new line and tabulator, and U+007F to U+009F.
bool is_control(std::string_view character) {
  const char first = character[0];
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() == 1) return (last < 0x20 && first != '\n' && first != '\t') || last == 0x7F;
  return character.size() == 2 && first == '\xC2' && last < 0xA0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character(text);
    const std::string_view next = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(next.size());
    if (length > 0 && !is_control(next)) {
      out += next;
      continue;
    }
    for (const char c : next) {
      const auto byte = static_cast<unsigned char>(c);
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace tessera
