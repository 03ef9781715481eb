#include "tessera/base/printable.h"

#include "tessera/base/utf8.h"

namespace tessera {

namespace {

/// U+0000 to U+001F but for new line and tabulator, and U+007F to U+009F.
bool is_control(char32_t character) {
  return (character < 0x20 && character != U'\n' && character != U'\t') ||
         (character >= 0x7F && character < 0xA0);
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const CodePoint found = code_point_at(text, 0);
    const std::string_view next =
        text.substr(0, found.size == 0 ? 1 : static_cast<std::size_t>(found.size));
    text.remove_prefix(next.size());
    if (found.size > 0 && !is_control(found.value)) {
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
